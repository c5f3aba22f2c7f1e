#include "aten/functions/attention_projection.h"

#include <array>

#include "assay/error.h"
#include "aten/functions/operand.h"

namespace assay::aten {

namespace {

std::vector<at::Tensor> thirds(const at::Tensor& tensor) {
  auto parts = tensor.chunk(3);
  if (parts.size() != 3) throw UserError("the attention weights cannot be split into three");
  return parts;
}

std::array<OptionalTensor, 3> thirds_or_nothing(const OptionalTensor& tensor) {
  if (!tensor) return {};
  const auto parts = thirds(*tensor);
  return {parts[0], parts[1], parts[2]};
}

// The parts of a projection done in one product, each contiguous.
std::vector<at::Tensor> separated(const at::Tensor& projection, std::int64_t parts,
                                  std::int64_t width) {
  return projection.unflatten(-1, {parts, width})
      .unsqueeze(0)
      .transpose(0, -2)
      .squeeze(-2)
      .contiguous()
      .unbind(0);
}

}  // namespace

at::Tensor run_linear(const at::Tensor& input, const at::Tensor& weight,
                      const OptionalTensor& bias) {
  return run_tensor("aten::linear", {input, weight, optional_operand(bias)});
}

Projected project_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const at::Tensor& weight, const OptionalTensor& bias) {
  const std::int64_t width = query.size(-1);
  if (!key.is_same(value)) {
    const auto weights = thirds(weight);
    const auto biases = thirds_or_nothing(bias);
    return {run_linear(query, weights[0], biases[0]), run_linear(key, weights[1], biases[1]),
            run_linear(value, weights[2], biases[2])};
  }
  if (query.is_same(key)) {
    const auto parts = separated(run_linear(query, weight, bias), 3, width);
    return {parts[0], parts[1], parts[2]};
  }
  const std::vector<std::int64_t> widths = {width, width * 2};
  const auto weights = weight.split_with_sizes(widths);
  OptionalTensor query_bias;
  OptionalTensor other_bias;
  if (bias) {
    const auto biases = bias->split_with_sizes(widths);
    query_bias = biases[0];
    other_bias = biases[1];
  }
  const at::Tensor projected_query = run_linear(query, weights[0], query_bias);
  const auto parts = separated(run_linear(key, weights[1], other_bias), 2, width);
  return {projected_query, parts[0], parts[1]};
}

Projected project_separately(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const Projected& weights,
                             const OptionalTensor& bias) {
  const std::array<OptionalTensor, 3> biases = thirds_or_nothing(bias);
  return {run_linear(query, weights.query, biases[0]), run_linear(key, weights.key, biases[1]),
          run_linear(value, weights.value, biases[2])};
}

}  // namespace assay::aten
