/// \file What several passes use to make their proposals: how many there are, and changes to a copy
/// of the program. Called by the files in reduce/passes/.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "reduce/candidate.h"

namespace assay::reduce {

/// For passes with one round.
std::size_t one_round(const Candidate& program);
/// For passes that try half of the calls, a quarter, ... one: how many tries that is.
std::size_t halvings(const Candidate& program);
/// And one proposal in each round.
std::size_t one_proposal(const Candidate& program, std::size_t round);

/// Applies `map` to the numbers in lists, tuples and slices of all calls' arguments, and to those
/// of methods such as `view`: they may be sizes.
void map_sizes(graph::Graph& graph, const std::function<std::int64_t(std::int64_t)>& map);

/// Keeps the calls of these atoms.
std::optional<Candidate> keep_atoms(const Candidate& program, const std::vector<Atom>& atoms,
                                    std::size_t begin, std::size_t end);

/// A copy of the graph to change, with what goes back into the program.
class Edit {
 public:
  explicit Edit(const Candidate& program) : program_(program), graph_(program.graph->clone()) {}

  graph::Graph& graph() { return *graph_; }
  Candidate& program() { return program_; }
  /// The node of the copy with the name of this one.
  graph::Node& node(const graph::Node& original) { return *graph_->find(original.name()); }
  /// The changed program. Unused calls and inputs are taken out; `values_hold`: the nodes that are
  /// left have the values they had.
  std::optional<Candidate> finish(bool values_hold);

 private:
  Candidate program_;
  std::unique_ptr<graph::Graph> graph_;
};

}  // namespace assay::reduce
