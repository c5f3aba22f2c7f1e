#include "compare/scaling.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>

#include "compare/tensor_trees.h"

namespace assay::compare {

namespace {

using at::Tensor;
using aten::Value;

double scale_of(const Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.layout() != at::kStrided || tensor.numel() == 0) {
    return 1;
  }
  const Tensor wide = tensor.to(at::kDouble);
  const Tensor finite = wide.masked_fill(at::isfinite(wide).logical_not(), 0);
  const double size = std::sqrt(finite.square().mean().item<double>());
  if (size == 0 || !std::isfinite(size)) return 1;
  return std::ldexp(1.0, std::clamp(-std::ilogb(size), -120, 120));
}

}  // namespace

std::vector<double> scales_of(const Value& value) {
  std::vector<double> scales;
  for_each_tensor(value, [&](const Tensor& tensor) { scales.push_back(scale_of(tensor)); });
  return scales;
}

Value scaled(const Value& value, const std::vector<double>& scales) {
  std::size_t next = 0;
  return map_tensors(value, [&](const Tensor& tensor) {
    const double scale = next < scales.size() ? scales[next] : 1;
    ++next;
    const bool can_scale = tensor.is_floating_point() && tensor.layout() == at::kStrided;
    return scale == 1 || !can_scale ? tensor : tensor.mul(scale);
  });
}

}  // namespace assay::compare
