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
#include <string_view>
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

/// Where a failure begins and where it is noticed, as far as trials could tell (reduce/locate.h).
struct Ends {
  struct WrongCall {
    std::string node;
    std::string kind;  ///< What differs from eager: dtype, values, nan, ...
  };

  /// The first calls whose results differ from eager's, one of each kind, in their order.
  std::vector<WrongCall> wrong = {};
  /// The call that raises; or the first that is wrong in the way that is looked for, if what is
  /// wrong is something else at first. Empty if there is none.
  std::string noticed = {};

  bool has(std::string_view node) const;
};

struct Candidate {
  std::shared_ptr<const graph::Graph> graph;
  std::vector<repro::StorageSpec> storages = {};
  std::vector<repro::Input> inputs = {};  ///< One per placeholder.
  /// What the nodes' values were; null once a change has made it untrue.
  std::shared_ptr<const Recording> values = {};
  /// Nodes that the failure pointed at.
  std::vector<std::string> suspects = {};
  /// Where the failure begins; nothing if nobody has asked yet.
  std::optional<Ends> ends = {};
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
