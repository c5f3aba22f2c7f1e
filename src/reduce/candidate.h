/// \file The program that is being reduced: a graph, its inputs, and what is known about its
/// values.
///
/// A program is a value: passes make new ones, and the driver keeps the best.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "repro/repro_file.h"

namespace assay::reduce {

/// The value a node had when the program was run eagerly.
struct RecordedValue {
  enum class Kind { tensor, constant, several, unknown };

  Kind kind = Kind::unknown;
  repro::StorageSpec storage = {};  ///< For a tensor; so is `tensor`, on storage 0.
  repro::TensorInput tensor = {};
  graph::Argument constant = {};
};

/// By the node's name.
using Recording = std::map<std::string, RecordedValue, std::less<>>;

/// Reads what a trial of Task::record reported.
Recording parse_recording(const std::string& json);

struct Candidate {
  std::shared_ptr<const graph::Graph> graph;
  std::vector<repro::StorageSpec> storages = {};
  std::vector<repro::Input> inputs = {};  ///< One per placeholder.
  /// What the nodes' values were; null once a change has made it untrue.
  std::shared_ptr<const Recording> values = {};
  /// Nodes that the failure pointed at.
  std::vector<std::string> suspects = {};
};

/// What is counted: calls, without taking items of a call's results.
std::size_t count_calls(const graph::Graph& graph);

/// A call with the nodes that take its items; they stay and go together.
using Atom = std::vector<const graph::Node*>;
std::vector<Atom> atoms(const graph::Graph& graph);

/// The program with only these calls. What they read from others becomes an input with the value it
/// had, and what nobody reads any more becomes a result. Nothing if a value that is needed is not
/// known, or nothing would be left.
std::optional<Candidate> keep_calls(const Candidate& program,
                                    const std::set<const graph::Node*>& kept);

/// Takes out an input that nobody reads.
void drop_input(Candidate& program, graph::Graph& graph, graph::Node& placeholder);

/// Takes out storages that no input uses.
void prune_storages(Candidate& program);

/// Erases calls and attribute reads that nobody uses, from the end, but for those in `keep`; then
/// attributes that nobody reads.
void erase_unused(graph::Graph& graph, const std::set<const graph::Node*>& keep = {});

}  // namespace assay::reduce
