// Views as the few kinds that compilers like, and the derivatives of views.
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_reshape_alias_ops.h>
#include <ATen/ops/_unsafe_view_ops.h>
#include <ATen/ops/diagonal_backward_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/select_backward_ops.h>
#include <ATen/ops/slice_backward_ops.h>
#include <ATen/ops/split_ops.h>
#include <ATen/ops/split_with_sizes_ops.h>
#include <ATen/ops/t_ops.h>
#include <ATen/ops/transpose_ops.h>
#include <ATen/ops/unbind_ops.h>
#include <ATen/ops/unsafe_split_ops.h>
#include <ATen/ops/unsafe_split_with_sizes_ops.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Tensor;

Tensor transpose(const Tensor& self, std::int64_t dim0, std::int64_t dim1) {
  auto order = reduced_dims(self, {});
  const std::int64_t first = at::maybe_wrap_dim(dim0, self.dim());
  const std::int64_t second = at::maybe_wrap_dim(dim1, self.dim());
  if (first != second) {
    std::swap(order[static_cast<std::size_t>(first)], order[static_cast<std::size_t>(second)]);
  }
  return self.permute(order);
}

Tensor t(const Tensor& self) {
  TORCH_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ",
              self.dim(), "D");
  return self.dim() == 2 ? self.permute({1, 0}) : self.permute(reduced_dims(self, {}));
}

Tensor unsafe_view(const Tensor& self, at::IntArrayRef size) { return self.view(size); }

// The strides follow from the size; they are an argument only to be computed once.
Tensor reshape_alias(const Tensor& self, at::IntArrayRef size, at::IntArrayRef /*stride*/) {
  return self.view(size);
}

std::vector<Tensor> split_with_sizes(const Tensor& self, at::IntArrayRef sizes, std::int64_t dim) {
  std::vector<Tensor> parts;
  parts.reserve(sizes.size());
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    TORCH_CHECK(size >= 0, "split_with_sizes expects split_sizes have only non-negative entries");
    parts.push_back(self.slice(dim, start, start + size));
    start += size;
  }
  TORCH_CHECK(start == self.size(dim), "split_with_sizes expects split_sizes to sum exactly to ",
              self.size(dim), ", but got ", start);
  return parts;
}

std::vector<Tensor> split(const Tensor& self, std::int64_t size, std::int64_t dim) {
  TORCH_CHECK(size >= 0, "split expects split_size be non-negative, but got ", size);
  const std::int64_t length = self.size(dim);
  TORCH_CHECK(size > 0 || length == 0, "split_size can only be 0 if dimension size is 0");
  std::vector<std::int64_t> sizes;
  for (std::int64_t start = 0; start < length; start += size) {
    sizes.push_back(std::min(size, length - start));
  }
  // Nothing is split into one part of nothing.
  if (sizes.empty()) sizes.push_back(0);
  return split_with_sizes(self, sizes, dim);
}

std::vector<Tensor> unbind(const Tensor& self, std::int64_t dim) {
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < self.size(dim); ++i) parts.push_back(self.select(dim, i));
  return parts;
}

// The gradient of what a view left out is zero.
Tensor zeros(const Tensor& grad, at::IntArrayRef sizes) {
  return at::full(sizes, 0, grad.options());
}

Tensor select_backward(const Tensor& grad, at::IntArrayRef sizes, std::int64_t dim,
                       std::int64_t index) {
  return zeros(grad, sizes).select_scatter(grad, dim, index);
}

Tensor slice_backward(const Tensor& grad, at::IntArrayRef sizes, std::int64_t dim,
                      std::int64_t start, std::int64_t end, std::int64_t step) {
  return zeros(grad, sizes).slice_scatter(grad, dim, start, end, step);
}

Tensor diagonal_backward(const Tensor& grad, at::IntArrayRef sizes, std::int64_t offset,
                         std::int64_t dim1, std::int64_t dim2) {
  return zeros(grad, sizes).diagonal_scatter(grad, offset, dim1, dim2);
}

}  // namespace

DecompositionTable view_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::_reshape_alias>("view", reshape_alias),
      row<ops::_unsafe_view>("view", unsafe_view),
      row<ops::diagonal_backward>("diagonal_scatter, full", diagonal_backward),
      row<ops::select_backward>("full, select_scatter", select_backward),
      row<ops::slice_backward>("full, slice_scatter", slice_backward),
      row<ops::split_Tensor>("slice", split),
      row<ops::split_with_sizes>("slice", split_with_sizes),
      row<ops::t>("permute", t),
      row<ops::transpose_int>("permute", transpose),
      row<ops::unbind_int>("select", unbind),
      row<ops::unsafe_split_Tensor>("slice", split),
      row<ops::unsafe_split_with_sizes>("slice", split_with_sizes),
  });
  return table;
}

}  // namespace assay::autograd
