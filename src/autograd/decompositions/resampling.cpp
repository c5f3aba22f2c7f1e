// Upsampling by the nearest element: each dimension is read at indices that are computed.
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_upsample_nearest_exact1d_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_ops.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index.h>
#include <ATen/ops/upsample_nearest1d_ops.h>
#include <ATen/ops/upsample_nearest2d_ops.h>
#include <ATen/ops/upsample_nearest3d_ops.h>

#include <array>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Tensor;
using Scale = std::optional<double>;

// Reads the last `dims` dimensions of `self` at the indices that `indices_of(i, size)` gives for
// the i-th of them. The result has the memory format of `self`, as those operators' results have.
template <typename IndicesOf>
Tensor sample(const Tensor& self, std::int64_t dims, const IndicesOf& indices_of) {
  c10::List<std::optional<Tensor>> indices;
  for (std::int64_t dim = dims; dim < self.dim(); ++dim) indices.push_back(std::nullopt);
  for (std::int64_t i = 0; i < dims; ++i) {
    // Along a dimension of its own, so that the indices together make a grid.
    std::vector<std::int64_t> shape(static_cast<std::size_t>(dims), 1);
    shape[static_cast<std::size_t>(i)] = -1;
    indices.push_back(indices_of(i, self.size(self.dim() - dims + i)).view(shape));
  }
  const at::MemoryFormat format = self.suggest_memory_format();
  const Tensor result = at::index(self, indices).contiguous(format);
  // Strides of single elements may be anything for `contiguous`.
  return result.strides() == at::IntArrayRef(strides_like(result, format)) ? result
                                                                           : result.clone(format);
}

// `shift` is 0 for nearest and 0.5, the middle of an element, for nearest-exact. The arithmetic is
// the kernel's, in single precision, since a rounding decides which element is the nearest.
template <std::size_t dims>
Tensor nearest(const Tensor& self, at::IntArrayRef output_size,
               const std::array<Scale, dims>& scales, double shift) {
  TORCH_CHECK(output_size.size() == dims && self.dim() == dims + 2,
              "It is expected that output_size equals ", dims, ", and input's dimensions ",
              dims + 2);
  return sample(self, dims, [&](std::int64_t i, std::int64_t size) {
    const std::int64_t wanted = output_size[static_cast<std::size_t>(i)];
    const Scale& given = scales[static_cast<std::size_t>(i)];
    const float scale = given && *given > 0 ? static_cast<float>(1.0 / *given)
                                            : static_cast<float>(size) / static_cast<float>(wanted);
    const Tensor position = at::arange(0, wanted, 1, self.options().dtype(at::kFloat));
    const Tensor shifted = shift == 0 ? position : position + shift;
    return (shifted * scale).floor().to(at::kLong).clamp({}, size - 1);
  });
}

Tensor nearest1d(const Tensor& self, at::IntArrayRef size, Scale scale) {
  return nearest<1>(self, size, {scale}, 0);
}

Tensor nearest2d(const Tensor& self, at::IntArrayRef size, Scale height, Scale width) {
  return nearest<2>(self, size, {height, width}, 0);
}

Tensor nearest3d(const Tensor& self, at::IntArrayRef size, Scale depth, Scale height, Scale width) {
  return nearest<3>(self, size, {depth, height, width}, 0);
}

Tensor nearest_exact1d(const Tensor& self, at::IntArrayRef size, Scale scale) {
  return nearest<1>(self, size, {scale}, 0.5);
}

Tensor nearest_exact2d(const Tensor& self, at::IntArrayRef size, Scale height, Scale width) {
  return nearest<2>(self, size, {height, width}, 0.5);
}

Tensor nearest_exact3d(const Tensor& self, at::IntArrayRef size, Scale depth, Scale height,
                       Scale width) {
  return nearest<3>(self, size, {depth, height, width}, 0.5);
}

}  // namespace

DecompositionTable resampling_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::_upsample_nearest_exact1d>(
          "_to_copy, add, arange, clamp, clone, floor, index, mul, view", nearest_exact1d),
      row<ops::_upsample_nearest_exact2d>(
          "_to_copy, add, arange, clamp, clone, floor, index, mul, view", nearest_exact2d),
      row<ops::_upsample_nearest_exact3d>(
          "_to_copy, add, arange, clamp, clone, floor, index, mul, view", nearest_exact3d),
      row<ops::upsample_nearest1d>("_to_copy, arange, clamp, clone, floor, index, mul, view",
                                   nearest1d),
      row<ops::upsample_nearest2d>("_to_copy, arange, clamp, clone, floor, index, mul, view",
                                   nearest2d),
      row<ops::upsample_nearest3d>("_to_copy, arange, clamp, clone, floor, index, mul, view",
                                   nearest3d),
  });
  return table;
}

}  // namespace assay::autograd
