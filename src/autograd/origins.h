/// \file Where the nodes of a joint graph come from: the node of the graph that was traced, with
/// its stack. A backward node belongs to the forward node whose derivative it is part of.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace assay::autograd {

class Origins {
 public:
  /// `traced`: the graph whose nodes are given to `finish`.
  explicit Origins(const graph::Graph& traced) : stage_(graph::record_stage(traced)) {}

  /// A node was recorded. `sequence_number` is that of the autograd node being run in backward, or
  /// negative in forward.
  void add(graph::Node& node, std::int64_t sequence_number);
  /// The earlier stage's node that made the forward nodes recorded since the last call, and the
  /// autograd nodes numbered below `next_sequence_number`.
  void finish(const graph::Node& origin, std::uint64_t next_sequence_number);

 private:
  void stamp(graph::Node& node, const graph::Node& origin) const;

  std::shared_ptr<const graph::RecordedStage> stage_;
  std::vector<graph::Node*> pending_;
  /// By the first sequence number after the origin's own.
  std::map<std::uint64_t, const graph::Node*> by_sequence_;
};

}  // namespace assay::autograd
