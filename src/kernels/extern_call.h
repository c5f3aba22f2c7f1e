/// \file A call of an ATen operator, ready to run: made of an ExternCall when a graph is compiled,
/// run by the compiled program. Operators with a good `out=` write into memory that they are given.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <memory>
#include <span>
#include <vector>

#include "assay/compiler.h"
#include "aten/runner.h"
#include "kernels/ir.h"

namespace assay::kernels {

/// The operands of an `out=` call: all its tensors, then the numbers of `addmm` and `baddbmm`.
struct OutArguments {
  std::span<const c10::IValue> tensors;
  const c10::Scalar& beta;
  const c10::Scalar& alpha;
};
using OutFunction = void (*)(const OutArguments& arguments, at::Tensor& out);

/// The `out=` variant of the call; nullptr if there is none that is worth it, or the call has
/// arguments that it does not take.
OutFunction find_out_function(const ExternCall& call);

/// The nodes that a call mentions, each once, in the order of the first mention, without
/// subgraphs: what its operands are. `positions` gets their places in ExternCall::operands.
std::vector<const graph::Node*> mentioned_nodes(const ExternCall& call,
                                                std::vector<std::size_t>& positions);

/// Runs a call through the dispatcher, and allocates its results.
class ExternRunner {
 public:
  explicit ExternRunner(const ExternCall& call, const graph::Graph& graph,
                        const graph::python::Source* source);

  /// One value per entry of mentioned_nodes(), which may be moved from. Appends one value per
  /// tensor of the call's results, or its whole result if the call has none.
  void run(std::span<c10::IValue> operands, Outputs& outputs) const {
    runner_->call(operands, outputs);
  }

 private:
  std::unique_ptr<graph::Graph> graph_;
  std::unique_ptr<aten::GraphRunner> runner_;
};

/// Numbers of an `out=` call.
struct OutScalars {
  c10::Scalar beta = 1;
  c10::Scalar alpha = 1;
};
OutScalars out_scalars(const ExternCall& call);

}  // namespace assay::kernels
