/// \file A compiled program: its forward and backward behind one autograd function, with everything
/// around them that makes a call look like the program itself.
///
/// Before the graphs run, inputs that are the same tensor are merged and captured tensors added;
/// after, changed inputs are written back and results that are views are made from their bases.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "autograd/joint_graph.h"
#include "autograd/partition.h"

namespace assay::autograd {

/// One compiled graph: its placeholders' tensors in, its outputs (undefined for None) out.
using CompiledGraph = std::function<std::vector<at::Tensor>(std::vector<at::Tensor>)>;

/// Which part of a program a graph is.
enum class GraphRole { inference, forward, backward };

const char* to_string(GraphRole role);

/// Compiles one graph. `graph` outlives the result.
using GraphCompiler =
    std::function<CompiledGraph(std::shared_ptr<const graph::Graph> graph, GraphRole role)>;

using Partitioner = Partition (*)(const graph::Graph& joint, std::size_t forward_outputs);

class Program {
 public:
  /// Splits the joint graph (if it has a backward half) and compiles the halves. The backward graph
  /// is compiled too, so that an error of the compiler shows before anything has run.
  Program(JointGraph joint, Partitioner partitioner, const GraphCompiler& compiler);
  ~Program();
  Program(Program&&) noexcept;

  /// Runs as the program would: same results, same changes to the inputs, same gradients.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

  const JointGraph& joint() const;
  /// The graph that is run first: the forward half, or the only one.
  const graph::Graph& forward() const;
  /// nullptr if nothing needs a gradient.
  const graph::Graph* backward() const;
  /// What forward keeps for backward, in bytes.
  std::uint64_t saved_bytes() const;

  struct State;

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace assay::autograd
