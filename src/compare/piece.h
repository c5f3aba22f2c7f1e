/// \file A few nodes of a graph as a graph of their own; internal to compare/first_divergence.cpp.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace assay::compare {

struct Piece {
  std::unique_ptr<graph::Graph> graph;
  /// The nodes outside whose values it takes, in the order of its placeholders.
  std::vector<const graph::Node*> inputs;
};

/// `nodes` in the order in which they run; the piece returns the value of `result`. Subgraphs come
/// with the nodes that call them.
Piece cut_out(const graph::Graph& graph, const std::vector<const graph::Node*>& nodes,
              const graph::Node& result);

/// Which nodes of two graphs compute the same thing.
class Correspondence {
 public:
  Correspondence(const graph::Graph& reference, const graph::Graph& suspect);

  /// The part of the suspect that computes what the reference's `node` does, from values of other
  /// nodes of the reference. No graph if the suspect has no such node.
  Piece piece_for(const graph::Node& node) const;

 private:
  void find_replacements(const graph::Graph& reference);
  const graph::Node* stands_for(const graph::Node& node) const;

  /// Of the suspect's nodes: the one whose value others read, and calls made for their effect.
  struct Group {
    const graph::Node* result = nullptr;
    std::vector<const graph::Node*> effects = {};
  };

  const graph::Graph& suspect_;
  std::unordered_map<const graph::Node*, Group> groups_;  ///< By the reference's node.
  /// From the suspect's nodes to the reference's: those of the same name or in the place of one;
  std::unordered_map<const graph::Node*, const graph::Node*> meaning_;
  /// and those only the suspect has, to the node before them that they depend on.
  std::unordered_map<const graph::Node*, const graph::Node*> owners_;
};

}  // namespace assay::compare
