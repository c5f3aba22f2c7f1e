/// \file The partitioners: a joint graph (autograd/joint_graph.h) split into a forward graph, which
/// also returns what backward needs, and a backward graph. Called between the trace and the
/// compilation of the two halves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace assay::autograd {

/// The two halves of a joint graph. They own all they need: the joint graph may go.
struct Partition {
  /// All primals in order -> (forward outputs..., saved values...).
  std::unique_ptr<graph::Graph> forward;
  /// (saved values..., tangents...) -> (gradients...). Every saved value is used.
  std::unique_ptr<graph::Graph> backward;
  /// The joint graph's names of the saved values, in order: tensors and integers, never tuples. The
  /// halves use the same names.
  std::vector<std::string> saved;
  /// The bytes of all saved tensors, each counted by its own sizes, whoever holds them besides.
  /// This is the figure to compare with what stock PyTorch's partitioners save.
  std::uint64_t saved_bytes = 0;
  /// What is held between forward and backward only because of backward: the bytes of saved tensors
  /// that share no memory with a primal or a forward output. Here a view counts as its whole base,
  /// which it keeps alive.
  std::uint64_t saved_bytes_new = 0;
};

/// Saves what backward uses of the forward's values, as eager autograd would; a view is saved as
/// the tensor it is a view of. What only gradients use is computed in backward. Throws `UserError`
/// if the graph is no joint graph of `forward_outputs` forward outputs, or lacks metadata of a
/// value it has to save.
Partition partition_default(const graph::Graph& joint, std::size_t forward_outputs);

/// Saves the fewest bytes from which backward can be computed without redoing anything expensive:
/// a minimum cut. Among equal cuts it takes the one that writes least in forward, then the one that
/// recomputes least. What may be recomputed is said in autograd/recompute_bans.h. Views always are,
/// except that a view of a part is saved where backward needs no more of its base.
/// Equal calls of the joint graph are merged first. Throws as `partition_default`. Both are
/// pipelines (autograd/partition_pipeline.cpp).
Partition partition_min_cut(const graph::Graph& joint, std::size_t forward_outputs);

/// The bytes of a node's value by its metadata: of a tensor, or of several together; 0 for a
/// number. A size with symbols counts as 4096, as in stock PyTorch. Throws `UserError` if nothing
/// is known of the value.
std::uint64_t value_bytes(const graph::Node& node);

}  // namespace assay::autograd
