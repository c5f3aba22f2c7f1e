/// \file Makes a graph of some nodes of another: those that lead from given inputs to given
/// outputs. Used by the partitioners (autograd/partition.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace assay::autograd {

struct Extraction {
  std::string name;  ///< Of the new graph.
  /// Become the placeholders, in this order, whatever they are in the original.
  std::vector<const graph::Node*> inputs;
  /// Returned as one tuple: nodes of the original, None or constants.
  std::vector<graph::Argument> outputs;
  /// Nodes that must run though no output may need them.
  std::vector<const graph::Node*> kept;
  /// Nodes that are placed just before their first user and not where the original has them, so
  /// that their results are not held from the start. Empty: none.
  std::function<bool(const graph::Node&)> is_placed_late;
};

/// The nodes that `outputs` and `kept` need, down to `inputs` and with them.
std::unordered_set<const graph::Node*> needed_nodes(const Extraction& extraction);

/// The new graph: names, metadata and the attributes in use are copied, the order is kept. An
/// internal error if it needs a placeholder that is not among the inputs.
std::unique_ptr<graph::Graph> extract(const graph::Graph& original, const Extraction& extraction);

}  // namespace assay::autograd
