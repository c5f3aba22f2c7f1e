/// \file Views as arithmetic on strides: what lowerings do with a TensorRef before they read it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "graph/meta.h"
#include "kernels/ir.h"

namespace assay::kernels {

std::int64_t element_count(std::span<const std::int64_t> sizes);
inline std::int64_t element_count(const Sizes& sizes) {
  return element_count(std::span<const std::int64_t>(sizes.data(), sizes.size()));
}
inline std::int64_t element_count(const TensorRef& ref) { return element_count(ref.sizes); }

/// Row-major strides; a dimension of size 0 counts as 1.
Sizes row_major_strides(const Sizes& sizes);

/// The first element that the tensor touches and the one after its last, from the buffer's start;
/// equal if it has no elements.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
Extent extent(const Sizes& sizes, const Sizes& strides, std::int64_t offset);
inline Extent extent(const TensorRef& ref) { return extent(ref.sizes, ref.strides, ref.offset); }

/// A dimension counted from the end if negative. A tensor without dimensions has one of size 1.
std::size_t wrap_dimension(std::int64_t dimension, std::size_t rank);

/// As the operators of these names; sizes of 1 are repeated with stride 0 by `expand`, which also
/// adds dimensions in front.
TensorRef expand(const TensorRef& ref, const Sizes& sizes);
TensorRef select(const TensorRef& ref, std::size_t dimension, std::int64_t index);
TensorRef slice(const TensorRef& ref, std::size_t dimension, std::int64_t start,
                std::int64_t length, std::int64_t step = 1);
TensorRef flip(const TensorRef& ref, std::size_t dimension);
TensorRef unsqueeze(const TensorRef& ref, std::size_t dimension);
TensorRef move_to_end(const TensorRef& ref, std::size_t dimension);

/// A layout without symbols; nothing if the metadata mentions one.
struct Layout {
  Sizes sizes;
  Sizes strides;
  std::int64_t offset = 0;
};
std::optional<Layout> layout_of(const graph::TensorMeta& meta);

/// True for the dtypes that kernels compute with (see ir.h). Others are left to ATen.
bool is_kernel_dtype(c10::ScalarType dtype);

/// The dtype in which arithmetic on `dtype` is done: float for half and bfloat16.
c10::ScalarType compute_dtype(c10::ScalarType dtype);
/// True of half and bfloat16, whose arithmetic is in float.
inline bool is_reduced(c10::ScalarType dtype) { return compute_dtype(dtype) != dtype; }

}  // namespace assay::kernels
