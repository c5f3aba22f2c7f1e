#include "kernels/tensor_ref.h"

#include <algorithm>

#include "assay/error.h"

namespace assay::kernels {

std::int64_t element_count(std::span<const std::int64_t> sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

Sizes row_major_strides(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

Extent extent(const Sizes& sizes, const Sizes& strides, std::int64_t offset) {
  Extent found{offset, offset};
  if (element_count(sizes) == 0) return found;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t reach = (sizes[i] - 1) * strides[i];
    (reach < 0 ? found.begin : found.end) += reach;
  }
  ++found.end;
  return found;
}

std::size_t wrap_dimension(std::int64_t dimension, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  if (dimension < -count || dimension >= count) {
    throw InternalError("dimension " + std::to_string(dimension) + " of a tensor with " +
                        std::to_string(rank));
  }
  return static_cast<std::size_t>(dimension < 0 ? dimension + count : dimension);
}

TensorRef expand(const TensorRef& ref, const Sizes& sizes) {
  if (ref.sizes.size() > sizes.size()) throw InternalError("expand to fewer dimensions");
  TensorRef result = ref;
  result.sizes = sizes;
  result.strides.assign(sizes.size(), 0);
  const std::size_t added = sizes.size() - ref.sizes.size();
  for (std::size_t i = 0; i < ref.sizes.size(); ++i) {
    if (ref.sizes[i] == sizes[added + i]) {
      result.strides[added + i] = ref.sizes[i] == 1 ? 0 : ref.strides[i];
    } else if (ref.sizes[i] != 1) {
      throw InternalError("sizes do not broadcast");
    }
  }
  return result;
}

TensorRef select(const TensorRef& ref, std::size_t dimension, std::int64_t index) {
  TensorRef result = ref;
  result.offset += index * ref.strides[dimension];
  result.sizes.erase(result.sizes.begin() + static_cast<std::ptrdiff_t>(dimension));
  result.strides.erase(result.strides.begin() + static_cast<std::ptrdiff_t>(dimension));
  return result;
}

TensorRef slice(const TensorRef& ref, std::size_t dimension, std::int64_t start,
                std::int64_t length, std::int64_t step) {
  TensorRef result = ref;
  result.offset += start * ref.strides[dimension];
  result.sizes[dimension] = length;
  result.strides[dimension] *= step;
  return result;
}

TensorRef flip(const TensorRef& ref, std::size_t dimension) {
  TensorRef result = ref;
  const std::int64_t last = std::max<std::int64_t>(ref.sizes[dimension], 1) - 1;
  result.offset += last * ref.strides[dimension];
  result.strides[dimension] = -ref.strides[dimension];
  return result;
}

TensorRef unsqueeze(const TensorRef& ref, std::size_t dimension) {
  TensorRef result = ref;
  result.sizes.insert(result.sizes.begin() + static_cast<std::ptrdiff_t>(dimension), 1);
  result.strides.insert(result.strides.begin() + static_cast<std::ptrdiff_t>(dimension), 0);
  return result;
}

TensorRef move_to_end(const TensorRef& ref, std::size_t dimension) {
  TensorRef result = select(ref, dimension, 0);
  result.sizes.push_back(ref.sizes[dimension]);
  result.strides.push_back(ref.strides[dimension]);
  return result;
}

std::optional<Layout> layout_of(const graph::TensorMeta& meta) {
  Layout layout;
  const auto copy = [](const std::vector<graph::SizeExpr>& from, Sizes& into) {
    for (const graph::SizeExpr& size : from) {
      const auto constant = size.constant();
      if (!constant) return false;
      into.push_back(*constant);
    }
    return true;
  };
  const auto offset = meta.storage_offset.constant();
  if (!offset || !copy(meta.sizes, layout.sizes) || !copy(meta.strides, layout.strides)) {
    return std::nullopt;
  }
  layout.offset = *offset;
  return layout;
}

bool is_kernel_dtype(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Bool:
    case c10::ScalarType::Byte:
    case c10::ScalarType::Char:
    case c10::ScalarType::Short:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
      return true;
    default:
      return false;
  }
}

c10::ScalarType compute_dtype(c10::ScalarType dtype) {
  return c10::isReducedFloatingType(dtype) ? c10::ScalarType::Float : dtype;
}

}  // namespace assay::kernels
