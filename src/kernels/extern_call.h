/// \file A call of an ATen operator, ready to run: made of an ExternCall when a graph is compiled,
/// run by the compiled program. Operators with a good `out=` write into memory that they are given.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <memory>
#include <optional>
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

/// A product of matrices that oneDNN computes (kernels/matmul.h).
bool is_onednn_product(const ExternCall& call);

/// A node that a call mentions, and the place of its first mention in ExternCall::operands.
struct MentionedNode {
  const graph::Node* node;
  std::size_t position;
};

/// What a call is passed: the nodes that it mentions, each once, without subgraphs.
std::vector<MentionedNode> mentioned_nodes(const ExternCall& call);

/// Runs a call through the dispatcher, which allocates the results.
class ExternRunner {
 public:
  /// `items` are the results that are wanted, by position; nothing means the whole value.
  ExternRunner(const ExternCall& call, const graph::Graph& graph,
               std::span<const std::optional<std::size_t>> items,
               const graph::python::Source* source);

  /// One value per entry of mentioned_nodes(), which may be moved from. Appends one value per entry
  /// of `items`.
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
