// Layer and group normalisation.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_weight_norm_interface_ops.h>
#include <ATen/ops/native_group_norm_backward_ops.h>
#include <ATen/ops/native_group_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>

#include <array>
#include <numeric>
#include <tuple>
#include <vector>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/statistics.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

std::tuple<at::Tensor, at::Tensor> mean_and_rstd(const at::Tensor& x, at::IntArrayRef dims,
                                                 double eps) {
  const at::Tensor mean = mean_over(x, dims, true);
  const at::Tensor variance = mean_over(square(x - mean), dims, true);
  return {mean, (variance + eps).rsqrt()};
}

at::Tensor normalised_backward(const at::Tensor& grad, const at::Tensor& normalised,
                               const at::Tensor& rstd, at::IntArrayRef dims) {
  const at::Tensor of_mean = mean_over(grad, dims, true);
  const at::Tensor of_variance = normalised * mean_over(grad * normalised, dims, true);
  return rstd * (grad - of_mean - of_variance);
}

at::ScalarType statistics_dtype(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                const std::optional<at::Tensor>& bias) {
  const bool wide = (is_given(weight) && weight->scalar_type() == at::kFloat) ||
                    (is_given(bias) && bias->scalar_type() == at::kFloat);
  return wide ? compute_dtype(input.scalar_type()) : input.scalar_type();
}

namespace {

namespace ops = at::_ops;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(end - begin));
  std::iota(dims.begin(), dims.end(), begin);
  return dims;
}

Tensor affine(const Tensor& normalised, const OptionalTensor& weight, const OptionalTensor& bias) {
  Tensor result = normalised;
  if (is_given(weight)) result = result * widen(*weight);
  if (is_given(bias)) result = result + widen(*bias);
  return result;
}

ThreeTensors native_layer_norm(const Tensor& input, at::IntArrayRef normalized_shape,
                               const OptionalTensor& weight, const OptionalTensor& bias,
                               double eps) {
  const std::int64_t first = input.dim() - static_cast<std::int64_t>(normalized_shape.size());
  const Tensor x = widen(input.contiguous());
  const auto [mean, rstd] = mean_and_rstd(x, range(first, input.dim()), eps);
  const Tensor output = affine((x - mean) * rstd, weight, bias);
  const at::ScalarType dtype = statistics_dtype(input, weight, bias);
  return {output.to(input.scalar_type()), mean.to(dtype), rstd.to(dtype)};
}

ThreeTensors native_layer_norm_backward(const Tensor& grad, const Tensor& input,
                                        at::IntArrayRef normalized_shape, const Tensor& mean,
                                        const Tensor& rstd, const OptionalTensor& weight,
                                        const OptionalTensor& bias, std::array<bool, 3> mask) {
  const std::int64_t first = input.dim() - static_cast<std::int64_t>(normalized_shape.size());
  const auto outer = range(0, first);
  const Tensor g = widen(grad.contiguous());
  const Tensor scale = widen(rstd.contiguous());
  const Tensor normalised = (widen(input.contiguous()) - widen(mean.contiguous())) * scale;
  // Only asked for if there is one; the kernel gives both gradients the weight's dtype.
  const at::ScalarType dtype = is_given(weight) ? weight->scalar_type()
                               : is_given(bias) ? bias->scalar_type()
                                                : input.scalar_type();
  ThreeTensors result;
  if (mask[0]) {
    const Tensor inner = is_given(weight) ? g * widen(*weight) : g;
    std::get<0>(result) = normalised_backward(inner, normalised, scale, range(first, input.dim()))
                              .to(input.scalar_type());
  }
  if (mask[1]) std::get<1>(result) = sum_over(g * normalised, outer, false).to(dtype);
  // One sample: its gradient, but never the tensor itself.
  if (mask[2]) std::get<2>(result) = (outer.empty() ? g.clone() : g.sum(outer)).to(dtype);
  return result;
}

// The formats that the kernel knows; others are made contiguous.
Tensor in_known_format(const Tensor& input) {
  return input.contiguous(input.suggest_memory_format());
}

// The sizes in which channels of one group are apart from other groups: [N, groups, C/groups, ...].
std::vector<std::int64_t> grouped_sizes(const Tensor& input, std::int64_t group) {
  std::vector<std::int64_t> sizes = {input.size(0), group, input.size(1) / group};
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) sizes.push_back(input.size(dim));
  return sizes;
}

// A tensor of one value per channel, or per group of each sample, against grouped sizes.
Tensor per_channel(const Tensor& channels, std::int64_t group, std::int64_t dims) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dims), 1);
  sizes[1] = group;
  sizes[2] = channels.numel() / group;
  return channels.view(sizes);
}

Tensor per_group(const Tensor& groups, std::int64_t dims) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dims), 1);
  sizes[0] = groups.size(0);
  sizes[1] = groups.size(1);
  return groups.view(sizes);
}

ThreeTensors native_group_norm(const Tensor& input, const OptionalTensor& weight,
                               const OptionalTensor& bias, std::int64_t batch,
                               std::int64_t /*channels*/, std::int64_t /*inner*/,
                               std::int64_t group, double eps) {
  const Tensor x = widen(in_known_format(input)).view(grouped_sizes(input, group));
  const auto [mean, rstd] = mean_and_rstd(x, range(2, x.dim()), eps);
  Tensor output = (x - mean) * rstd;
  if (is_given(weight)) output = output * per_channel(widen(*weight), group, x.dim());
  if (is_given(bias)) output = output + per_channel(widen(*bias), group, x.dim());
  const at::ScalarType dtype = statistics_dtype(input, weight, bias);
  return {output.view(input.sizes()).to(input.scalar_type()), mean.view({batch, group}).to(dtype),
          rstd.view({batch, group}).to(dtype)};
}

ThreeTensors native_group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean,
                                        const Tensor& rstd, const OptionalTensor& weight,
                                        std::int64_t /*batch*/, std::int64_t channels,
                                        std::int64_t /*inner*/, std::int64_t group,
                                        std::array<bool, 3> mask) {
  const auto sizes = grouped_sizes(input, group);
  const Tensor x = widen(in_known_format(input)).view(sizes);
  const Tensor g = widen(grad.contiguous(input.suggest_memory_format())).view(sizes);
  const Tensor scale = per_group(widen(rstd.contiguous()), x.dim());
  const Tensor normalised = (x - per_group(widen(mean.contiguous()), x.dim())) * scale;
  const at::ScalarType dtype = is_given(weight) ? weight->scalar_type() : input.scalar_type();
  // All but the channels and their groups.
  auto outer = range(2, x.dim());
  outer.front() = 0;

  ThreeTensors result;
  if (mask[0]) {
    const Tensor inner = is_given(weight) ? g * per_channel(widen(*weight), group, x.dim()) : g;
    std::get<0>(result) = normalised_backward(inner, normalised, scale, range(2, x.dim()))
                              .view(input.sizes())
                              .to(input.scalar_type());
  }
  if (mask[1]) {
    std::get<1>(result) =
        sum_over(g * normalised, outer, false).contiguous().view({channels}).to(dtype);
  }
  if (mask[2])
    std::get<2>(result) = sum_over(g, outer, false).contiguous().view({channels}).to(dtype);
  return result;
}

std::tuple<Tensor, Tensor> weight_norm(const Tensor& v, const Tensor& g, std::int64_t dim) {
  auto over = range(0, v.dim());
  over.erase(over.begin() + dim);
  const Tensor direction = widen(v);
  const Tensor norm = sum_over(square(direction), over, true).sqrt();
  return {(direction * (widen(g) / norm)).to(v.scalar_type()), norm};
}

}  // namespace

DecompositionTable normalisation_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::_weight_norm_interface>("_to_copy, div, mul, sqrt, sum", weight_norm),
      row_of_planes<ops::native_group_norm>("_to_copy, add, clone, div, mul, rsqrt, sub, sum, view",
                                            native_group_norm),
      row_of_planes<ops::native_group_norm_backward>("_to_copy, div, mul, sub, sum, view",
                                                     native_group_norm_backward),
      row<ops::native_layer_norm>("_to_copy, add, clone, div, mul, rsqrt, sub, sum",
                                  native_layer_norm),
      row<ops::native_layer_norm_backward>("_to_copy, clone, div, mul, sub, sum",
                                           native_layer_norm_backward),
  });
  return table;
}

}  // namespace assay::autograd
