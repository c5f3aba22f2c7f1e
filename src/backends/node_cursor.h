/// \file Which node of a graph is being run, known from those that have finished.
#pragma once

#include <unordered_set>

#include "graph/graph.h"

namespace assay::backends {

/// Follows one run of a graph; give `finish` to the runner as its observer.
class NodeCursor {
 public:
  explicit NodeCursor(const graph::Graph& graph) : graph_(graph), at_(graph.nodes().begin()) {}

  // Items of a call with several results finish with the call, ahead of their place.
  void finish(const graph::Node& node) {
    finished_.insert(&node);
    while (at_ != graph_.nodes().end() && finished_.contains(&*at_)) ++at_;
  }
  /// nullptr after the last one.
  const graph::Node* current() const { return at_ == graph_.nodes().end() ? nullptr : &*at_; }

 private:
  const graph::Graph& graph_;
  std::list<graph::Node>::const_iterator at_;
  std::unordered_set<const graph::Node*> finished_;
};

}  // namespace assay::backends
