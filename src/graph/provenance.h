/// \file Which nodes of an earlier stage a node was made of: captured graph, lowered graph, joint
/// graph, half.
///
/// Each stage is recorded as it was when the next one was made from it (`record_stage` in
/// graph/graph.h), and points to the one before, so that a node's origin can be followed back by
/// ids to any stage, whatever the stages call their nodes and after their graphs are gone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::graph {

/// Identifies a node in its graph and in copies of that graph; never used again for another node.
using NodeId = std::uint32_t;

class RecordedStage;

/// Nodes of one earlier stage.
struct Provenance {
  std::shared_ptr<const RecordedStage> stage;  ///< Null: the node comes from nowhere else.
  std::vector<NodeId> nodes;

  bool empty() const { return nodes.empty(); }
  /// What those nodes are called in the first stage of the chain, without repetitions.
  std::vector<std::string> names() const;

  /// True if both name the same nodes: a graph read from text knows names only.
  friend bool operator==(const Provenance& left, const Provenance& right) {
    if (left.stage == right.stage && left.nodes == right.nodes) return true;
    return left.names() == right.names();
  }
};

/// The nodes of a graph, as they were when a later graph was made from it.
class RecordedStage {
 public:
  struct Entry {
    std::string name;  ///< Empty: no node has this id.
    Provenance from;
  };

  /// A stage of the graph with that identity (`Graph::identity`).
  explicit RecordedStage(std::uint64_t graph) : graph_(graph) {}

  std::uint64_t graph() const { return graph_; }
  /// True if it is known only from names in a text: nothing earlier is known.
  bool is_from_text() const { return graph_ == 0; }
  /// True if some of its nodes were made of nodes of a recorded stage.
  bool has_earlier() const { return has_earlier_; }
  const Entry* find(NodeId id) const {
    return id < entries_.size() && !entries_[id].name.empty() ? &entries_[id] : nullptr;
  }
  void add(NodeId id, std::string name, Provenance from);

 private:
  std::uint64_t graph_;
  std::vector<Entry> entries_;  // by id
  bool has_earlier_ = false;
};

/// The names that a text gives as the nodes' origin: a stage of which only names are known.
class NamedOrigins {
 public:
  Provenance of(const std::vector<std::string>& names);

 private:
  std::shared_ptr<RecordedStage> stage_ = std::make_shared<RecordedStage>(0);
  std::unordered_map<std::string, NodeId> ids_;
};

}  // namespace assay::graph
