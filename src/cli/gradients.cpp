#include "cli/gradients.h"

#include <ATen/core/Tensor.h>

#include "assay/error.h"

namespace assay::cli {

namespace {

using at::Tensor;

void collect(const aten::Value& value, Tensor& sum) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.leaf.toTensor();
    if (!tensor.defined() || !tensor.requires_grad() || !tensor.is_floating_point()) return;
    const Tensor part = tensor.sum().to(at::kDouble);
    sum = sum.defined() ? sum.add(part) : part;
    return;
  }
  if (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple())) {
    for (const aten::Value& item : aten::unpack(value)) collect(item, sum);
  }
  for (const aten::Value& item : value.items) collect(item, sum);
}

}  // namespace

void keep_gradients(const std::vector<aten::Value>& inputs) {
  for (const aten::Value& input : inputs) {
    if (!input.is_tensor() || !input.leaf.toTensor().defined()) continue;
    const Tensor& tensor = input.leaf.toTensor();
    if (tensor.requires_grad() && !tensor.is_leaf()) tensor.retain_grad();
  }
}

NamedGradients run_backward(const aten::Value& results, const std::vector<aten::Value>& inputs,
                            const graph::Graph& graph) {
  Tensor sum;
  collect(results, sum);
  if (!sum.defined()) {
    throw UserError("--backward: no floating-point result of the graph requires grad",
                    "an input must require grad, and the file must be captured before autograd");
  }
  sum.backward();
  NamedGradients gradients;
  const auto placeholders = graph.placeholders();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor() || !inputs[i].leaf.toTensor().defined()) continue;
    const Tensor& gradient = inputs[i].leaf.toTensor().grad();
    if (gradient.defined()) gradients.emplace_back(placeholders[i]->name(), gradient);
  }
  return gradients;
}

}  // namespace assay::cli
