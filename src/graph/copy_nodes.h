/// \file Copies nodes of one graph into another, with their metadata and the attributes they use:
/// for copies of graphs, the halves of a joint graph, and bodies put in the place of their calls.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace assay::graph {

/// What stands in the copy for each node of the original: its own copy, or another argument.
using NodeMap = std::unordered_map<const Node*, Argument>;

class NodeCopier {
 public:
  /// New nodes go to the insertion point of `to`. With `attribute_prefix`, attributes are copied
  /// under that name and their own, so that they cannot meet those that `to` has.
  NodeCopier(const Graph& from, Graph& to, std::string attribute_prefix = {})
      : from_(from), to_(to), attribute_prefix_(std::move(attribute_prefix)) {}

  /// Mentions of `original` become mentions of `replacement`, a node of the copy or a constant.
  void replace(const Node& original, Argument replacement) {
    map_.insert_or_assign(&original, std::move(replacement));
  }
  bool has(const Node& original) const { return map_.contains(&original); }
  const NodeMap& map() const { return map_; }

  /// Copies a node whose inputs have been copied or replaced. The name is kept where it is free.
  Node& copy(const Node& original);
  /// A placeholder that stands for the value of any node, with its metadata.
  Node& copy_as_input(const Node& original);
  /// The argument with the nodes of the original replaced by what stands for them.
  Argument translate(const Argument& argument) const;

 private:
  friend std::unique_ptr<Graph> copy_graph(const Graph& graph, NodeMap& copies);
  std::string copy_attribute(const std::string& target);
  void set_arguments(const Node& original, Node& copy);
  void finish(const Node& original, Node& copy);

  const Graph& from_;
  Graph& to_;
  std::string attribute_prefix_;
  NodeMap map_;
};

/// As `Graph::clone`; `copies` gets the copy of every node.
std::unique_ptr<Graph> copy_graph(const Graph& graph, NodeMap& copies);

}  // namespace assay::graph
