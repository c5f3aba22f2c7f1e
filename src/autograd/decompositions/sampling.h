/// \file What padding and resampling share.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/index.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "autograd/decompositions/support.h"

namespace assay::autograd {

/// Reads the last `dims` dimensions of `self` at the indices that `indices_of(i, size)` gives for
/// the i-th of them. The result has the memory format of `self`, as those operators' results have.
template <typename IndicesOf>
at::Tensor sample(const at::Tensor& self, std::int64_t dims, const IndicesOf& indices_of) {
  c10::List<std::optional<at::Tensor>> indices;
  for (std::int64_t dim = dims; dim < self.dim(); ++dim) indices.push_back(std::nullopt);
  for (std::int64_t i = 0; i < dims; ++i) {
    // Along a dimension of its own, so that the indices together make a grid.
    std::vector<std::int64_t> shape(static_cast<std::size_t>(dims), 1);
    shape[static_cast<std::size_t>(i)] = -1;
    indices.push_back(indices_of(i, self.size(self.dim() - dims + i)).view(shape));
  }
  const at::MemoryFormat format = self.suggest_memory_format();
  const at::Tensor result = at::index(self, indices).contiguous(format);
  // Strides of single elements may be anything for `contiguous`.
  return result.strides() == at::IntArrayRef(strides_like(result, format)) ? result
                                                                           : result.clone(format);
}

}  // namespace assay::autograd
