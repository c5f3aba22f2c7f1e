#include "aten/functions/attention_projection.h"

#include "aten/functions/operand.h"

namespace assay::aten {

namespace {

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

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias) {
  return run_tensor("aten::linear", {input, weight, optional_operand(bias)});
}

Projected project_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const at::Tensor& weight, const OptionalTensor& bias) {
  const std::int64_t width = query.size(-1);
  if (!key.is_same(value)) {
    const auto weights = weight.chunk(3);
    const auto biases = bias ? bias->chunk(3) : std::vector<at::Tensor>();
    const auto part = [&](std::size_t i) {
      return biases.empty() ? OptionalTensor() : OptionalTensor(biases[i]);
    };
    return {linear(query, weights[0], part(0)), linear(key, weights[1], part(1)),
            linear(value, weights[2], part(2))};
  }
  if (query.is_same(key)) {
    const auto parts = separated(linear(query, weight, bias), 3, width);
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
  const at::Tensor projected_query = linear(query, weights[0], query_bias);
  const auto parts = separated(linear(key, weights[1], other_bias), 2, width);
  return {projected_query, parts[0], parts[1]};
}

Projected project_separately(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const Projected& weights,
                             const OptionalTensor& bias) {
  const auto biases = bias ? bias->chunk(3) : std::vector<at::Tensor>();
  const auto part = [&](std::size_t i) {
    return biases.empty() ? OptionalTensor() : OptionalTensor(biases[i]);
  };
  return {linear(query, weights.query, part(0)), linear(key, weights.key, part(1)),
          linear(value, weights.value, part(2))};
}

}  // namespace assay::aten
