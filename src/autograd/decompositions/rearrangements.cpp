// Operators that only move elements, or take some of them.
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/channel_shuffle_ops.h>
#include <ATen/ops/diag_embed_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pixel_shuffle_ops.h>
#include <ATen/ops/pixel_unshuffle_ops.h>
#include <ATen/ops/repeat_ops.h>
#include <ATen/ops/roll_ops.h>
#include <ATen/ops/rot90_ops.h>
#include <ATen/ops/stack_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>
#include <ATen/ops/where.h>

#include <utility>
#include <vector>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Tensor;
using Sizes = std::vector<std::int64_t>;

Tensor stack(at::TensorList tensors, std::int64_t dim) {
  TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const Tensor& first = tensors.front();
  const std::int64_t at_dim = at::maybe_wrap_dim(dim, first.dim() + 1);
  for (const Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.sizes() == first.sizes(), "stack expects each tensor to be equal size");
  }
  // ATen joins along the dimension and then splits it, so that the memory format is that of `cat`.
  if (at_dim < first.dim()) {
    Sizes sizes = first.sizes().vec();
    sizes.insert(sizes.begin() + at_dim, static_cast<std::int64_t>(tensors.size()));
    return at::cat(tensors, at_dim).view(sizes);
  }
  std::vector<Tensor> layers;
  layers.reserve(tensors.size());
  for (const Tensor& tensor : tensors) layers.push_back(tensor.contiguous().unsqueeze(at_dim));
  return at::cat(layers, at_dim);
}

// Every dimension gets one of copies before it; all are then merged.
Tensor repeat(const Tensor& self, at::IntArrayRef repeats) {
  const auto dims = static_cast<std::int64_t>(repeats.size());
  TORCH_CHECK(dims >= self.dim(),
              "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
              "tensor");
  Sizes apart;
  Sizes expanded;
  Sizes merged;
  for (std::int64_t dim = 0; dim < dims; ++dim) {
    const std::int64_t own = dim - (dims - self.dim());
    const std::int64_t size = own < 0 ? 1 : self.size(own);
    const std::int64_t copies = repeats[static_cast<std::size_t>(dim)];
    apart.insert(apart.end(), {1, size});
    expanded.insert(expanded.end(), {copies, size});
    merged.push_back(copies * size);
  }
  return self.contiguous()
      .view(apart)
      .expand(expanded)
      .clone(at::MemoryFormat::Contiguous)
      .view(merged);
}

// `self` in the sizes of `apart`, permuted, and merged to `merged`, in the format it had.
Tensor regroup(const Tensor& self, const Sizes& apart, const Sizes& order, const Sizes& merged) {
  return self.view(apart)
      .permute(order)
      .clone(at::MemoryFormat::Contiguous)
      .view(merged)
      .contiguous(self.suggest_memory_format());
}

// Sizes before the last three, and the permutation that leaves them alone, for images [..., C, H,
// W] of which the last dimensions are split.
Sizes batch_sizes(const Tensor& self) { return {self.sizes().begin(), self.sizes().end() - 3}; }

Sizes batch_order(const Tensor& self, const Sizes& rest) {
  Sizes order;
  for (std::int64_t dim = 0; dim < self.dim() - 3; ++dim) order.push_back(dim);
  for (const std::int64_t dim : rest) order.push_back(self.dim() - 3 + dim);
  return order;
}

Sizes joined(Sizes sizes, const Sizes& rest) {
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return sizes;
}

Tensor pixel_shuffle(const Tensor& self, std::int64_t factor) {
  TORCH_CHECK(self.dim() >= 3 && factor > 0 && self.size(-3) % (factor * factor) == 0,
              "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
              "of upscale_factor");
  const std::int64_t channels = self.size(-3) / (factor * factor);
  const std::int64_t height = self.size(-2);
  const std::int64_t width = self.size(-1);
  const Sizes batch = batch_sizes(self);
  return regroup(self, joined(batch, {channels, factor, factor, height, width}),
                 batch_order(self, {0, 3, 1, 4, 2}),
                 joined(batch, {channels, height * factor, width * factor}));
}

Tensor pixel_unshuffle(const Tensor& self, std::int64_t factor) {
  TORCH_CHECK(
      self.dim() >= 3 && factor > 0 && self.size(-2) % factor == 0 && self.size(-1) % factor == 0,
      "pixel_unshuffle expects height and width to be divisible by downscale_factor");
  const std::int64_t channels = self.size(-3);
  const std::int64_t height = self.size(-2) / factor;
  const std::int64_t width = self.size(-1) / factor;
  const Sizes batch = batch_sizes(self);
  return regroup(self, joined(batch, {channels, height, factor, width, factor}),
                 batch_order(self, {0, 2, 4, 1, 3}),
                 joined(batch, {channels * factor * factor, height, width}));
}

Tensor roll_one(const Tensor& self, std::int64_t shift, std::int64_t dim) {
  const std::int64_t size = self.size(dim);
  const std::int64_t start = ((-shift) % size + size) % size;
  return at::cat({self.slice(dim, start, size), self.slice(dim, 0, start)}, dim);
}

Tensor roll(const Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  if (self.numel() == 0) return self.clone();
  if (dims.empty() && shifts.size() == 1) {
    return roll_one(self.contiguous().view(-1), shifts.front(), 0).view(self.sizes());
  }
  TORCH_CHECK(shifts.size() == dims.size() && !dims.empty(), "shifts and dimensions must align");
  Tensor rolled = self;
  for (std::size_t i = 0; i < dims.size(); ++i) rolled = roll_one(rolled, shifts[i], dims[i]);
  return rolled;
}

Tensor rot90(const Tensor& self, std::int64_t k, at::IntArrayRef dims) {
  TORCH_CHECK(dims.size() == 2, "expected total rotation dims == 2");
  const std::int64_t first = at::maybe_wrap_dim(dims[0], self.dim());
  const std::int64_t second = at::maybe_wrap_dim(dims[1], self.dim());
  auto swapped = reduced_dims(self, {});
  std::swap(swapped[static_cast<std::size_t>(first)], swapped[static_cast<std::size_t>(second)]);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return self.flip({second}).permute(swapped);
    case 2:
      return self.flip({first, second});
    case 3:
      return self.flip({first}).permute(swapped);
    default:
      return self.clone(at::MemoryFormat::Contiguous);
  }
}

// How far right of the diagonal each element of a matrix is.
Tensor offset_from_diagonal(const Tensor& self, std::int64_t rows, std::int64_t columns) {
  const auto options = self.options().dtype(at::kLong);
  return at::arange(0, columns, 1, options) - at::arange(0, rows, 1, options).unsqueeze(-1);
}

Tensor tril(const Tensor& self, std::int64_t diagonal) {
  const Tensor offset = offset_from_diagonal(self, self.size(-2), self.size(-1));
  const Tensor x = self.contiguous();
  return at::where(offset <= diagonal, x, constant(x, 0));
}

Tensor triu(const Tensor& self, std::int64_t diagonal) {
  const Tensor offset = offset_from_diagonal(self, self.size(-2), self.size(-1));
  const Tensor x = self.contiguous();
  return at::where(offset >= diagonal, x, constant(x, 0));
}

// The last dimension of `self` becomes the diagonal of a square in dimensions dim1 and dim2.
Tensor diag_embed(const Tensor& self, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  const std::int64_t first = at::maybe_wrap_dim(dim1, self.dim() + 1);
  const std::int64_t second = at::maybe_wrap_dim(dim2, self.dim() + 1);
  TORCH_CHECK(first != second, "diagonal dimensions cannot be identical");
  const std::int64_t side = self.size(-1) + (offset < 0 ? -offset : offset);
  Sizes sizes(self.sizes().begin(), self.sizes().end() - 1);
  const auto insert = [&](std::int64_t dim) { sizes.insert(sizes.begin() + dim, side); };
  insert(std::min(first, second));
  insert(std::max(first, second));
  return at::full(sizes, 0, self.options()).diagonal_scatter(self, offset, first, second);
}

Tensor channel_shuffle(const Tensor& self, std::int64_t groups) {
  TORCH_CHECK(self.dim() > 2 && groups > 0 && self.size(1) % groups == 0,
              "Number of channels must be divisible by groups");
  Sizes apart = {self.size(0), groups, self.size(1) / groups};
  Sizes order = {0, 2, 1};
  for (std::int64_t dim = 2; dim < self.dim(); ++dim) {
    apart.push_back(self.size(dim));
    order.push_back(dim + 1);
  }
  return regroup(self, apart, order, self.sizes().vec());
}

}  // namespace

DecompositionTable rearrangement_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::channel_shuffle>("clone, permute, view", channel_shuffle),
      row<ops::diag_embed>("diagonal_scatter, full", diag_embed),
      row<ops::pixel_shuffle>("clone, permute, view", pixel_shuffle),
      row<ops::pixel_unshuffle>("clone, permute, view", pixel_unshuffle),
      row<ops::repeat>("clone, expand, view", repeat),
      row<ops::roll>("cat, clone, slice, view", roll),
      row<ops::rot90>("clone, flip, permute", rot90),
      row<ops::stack>("cat, clone, unsqueeze, view", stack),
      row<ops::tril>("arange, clone, full, le, sub, unsqueeze, where", tril),
      row<ops::triu>("arange, clone, full, ge, sub, unsqueeze, where", triu),
  });
  return table;
}

}  // namespace assay::autograd
