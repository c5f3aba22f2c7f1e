// Padding with what is inside: each padded dimension is read at indices that are computed.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index.h>
#include <ATen/ops/reflection_pad1d_ops.h>
#include <ATen/ops/reflection_pad2d_ops.h>
#include <ATen/ops/reflection_pad3d_ops.h>
#include <ATen/ops/replication_pad1d_ops.h>
#include <ATen/ops/replication_pad2d_ops.h>
#include <ATen/ops/replication_pad3d_ops.h>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/sampling.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Tensor;

// Positions in the unpadded dimension, outside of it in the padding.
Tensor positions(const Tensor& self, std::int64_t size, std::int64_t before, std::int64_t after) {
  return at::arange(-before, size + after, 1, self.options().dtype(at::kLong));
}

// Both ends are mirrors that are not doubled: 2 1 | 0 1 2 | 1 0.
Tensor reflected(const Tensor& position, std::int64_t size) {
  return (position.abs() - (size - 1)).abs().neg() + (size - 1);
}

Tensor replicated(const Tensor& position, std::int64_t size) { return position.clamp(0, size - 1); }

// `padding` is before and after, of the last dimension first.
template <Tensor (*place)(const Tensor& position, std::int64_t size), std::int64_t dims,
          bool is_reflection>
Tensor pad(const Tensor& self, at::IntArrayRef padding) {
  TORCH_CHECK(padding.size() == 2 * dims, "padding size is expected to be ", 2 * dims);
  return sample(self, dims, [&](std::int64_t i, std::int64_t size) {
    const auto last_first = static_cast<std::size_t>(2 * (dims - 1 - i));
    const std::int64_t before = padding[last_first];
    const std::int64_t after = padding[last_first + 1];
    TORCH_CHECK(!is_reflection || (before < size && after < size),
                "Argument #4: Padding size should be less than the corresponding input dimension");
    return place(positions(self, size, before, after), size);
  });
}

}  // namespace

DecompositionTable padding_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::reflection_pad1d>("abs, add, arange, clone, index, neg, sub, view",
                                 pad<reflected, 1, true>),
      row<ops::reflection_pad2d>("abs, add, arange, clone, index, neg, sub, view",
                                 pad<reflected, 2, true>),
      row<ops::reflection_pad3d>("abs, add, arange, clone, index, neg, sub, view",
                                 pad<reflected, 3, true>),
      row<ops::replication_pad1d>("arange, clamp, clone, index, view", pad<replicated, 1, false>),
      row<ops::replication_pad2d>("arange, clamp, clone, index, view", pad<replicated, 2, false>),
      row<ops::replication_pad3d>("arange, clamp, clone, index, view", pad<replicated, 3, false>),
  });
  return table;
}

}  // namespace assay::autograd
