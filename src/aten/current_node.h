/// \file Which node this thread is running, for whoever must name it after a crash or a hang.
#pragma once

#include "graph/graph.h"

namespace assay::aten {

/// The node that a GraphRunner on this thread is running; nullptr if none is. May be read from a
/// signal handler.
inline thread_local constinit const graph::Node* current_node = nullptr;

/// Puts the node back that was current before: a runner may run inside another one's node.
class CurrentNodeScope {
 public:
  CurrentNodeScope() = default;
  ~CurrentNodeScope() { current_node = outer_; }
  CurrentNodeScope(const CurrentNodeScope&) = delete;
  CurrentNodeScope& operator=(const CurrentNodeScope&) = delete;

 private:
  const graph::Node* outer_ = current_node;
};

}  // namespace assay::aten
