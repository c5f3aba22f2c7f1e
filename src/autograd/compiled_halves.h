/// \file The compiled halves of a program, forward and backward, behind one autograd function, with
/// everything around them that makes a call look like the program itself.
///
/// Before the graphs run, inputs that are the same tensor are merged and captured tensors added;
/// after, mutated inputs are written back and results that are views are made from their bases.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <vector>

#include "assay/compiler.h"
#include "autograd/differentiable_gradients.h"
#include "autograd/joint_graph.h"
#include "autograd/partition.h"

namespace assay::autograd {

using Partitioner = Partition (*)(const graph::Graph& joint, std::size_t forward_outputs);

struct HalvesOptions {
  Partitioner partitioner = &partition_min_cut;
  /// Compiles each half.
  Compiler compiler;
  /// Shared with the requests for the halves.
  std::shared_ptr<const CompileContext> context = std::make_shared<const CompileContext>();
  BackendOptions options = {};
  /// Compile the backward graph at the first backward, with the values it is given as example
  /// inputs. Otherwise it is compiled with the forward graph, so that a compiler's error shows
  /// before anything has run.
  bool lazy_backward = false;
  /// Runs where gradients are to be differentiated again. Empty: that is an error.
  TensorProgram program = {};
};

class CompiledHalves {
 public:
  /// Splits the joint graph, if it has a backward half, and compiles the halves. `inputs` are the
  /// tensors it was traced with.
  CompiledHalves(JointGraph joint, const std::vector<at::Tensor>& inputs,
                 const HalvesOptions& options);
  ~CompiledHalves();
  CompiledHalves(CompiledHalves&&) noexcept;

  /// Runs as the program would: same results, same mutations of the inputs, same gradients. Tensors
  /// in (moved from), the program's results appended to `outputs`.
  void call(std::span<c10::IValue> inputs, Outputs& outputs) const;

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
