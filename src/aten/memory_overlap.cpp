#include "aten/memory_overlap.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace assay::aten {

namespace {

using at::Tensor;

struct Dimension {
  std::int64_t size;
  std::int64_t stride;
};

// The dimensions along which there is more than one element, by growing stride.
std::vector<Dimension> dimensions_of(const Tensor& tensor) {
  std::vector<Dimension> dimensions;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) != 1) dimensions.push_back({tensor.size(d), tensor.stride(d)});
  }
  std::ranges::sort(dimensions, {}, &Dimension::stride);
  return dimensions;
}

// Calls `visit` with each element's distance from the first one until it returns true.
template <typename Visit>
bool any_element(const std::vector<Dimension>& dimensions, const Visit& visit) {
  std::vector<std::int64_t> index(dimensions.size(), 0);
  std::int64_t place = 0;
  while (true) {
    if (visit(place)) return true;
    std::size_t d = 0;
    for (; d < dimensions.size(); ++d) {
      place += dimensions[d].stride;
      if (++index[d] < dimensions[d].size) break;
      place -= dimensions[d].size * dimensions[d].stride;
      index[d] = 0;
    }
    if (d == dimensions.size()) return false;
  }
}

// True if every stride steps over all that the smaller ones reach.
bool is_nested(const std::vector<Dimension>& dimensions) {
  std::int64_t reached = 0;
  for (const Dimension& dimension : dimensions) {
    if (dimension.stride <= reached) return false;
    reached += (dimension.size - 1) * dimension.stride;
  }
  return true;
}

bool are_in_one_storage(const Tensor& left, const Tensor& right) {
  return left.has_storage() && right.has_storage() &&
         left.storage().unsafeGetStorageImpl() == right.storage().unsafeGetStorageImpl();
}

bool ranges_intersect(const Tensor& left, const Tensor& right) {
  const auto range = [](const Tensor& tensor) {
    const auto item = static_cast<std::int64_t>(tensor.itemsize());
    const std::int64_t begin = tensor.storage_offset() * item;
    return std::pair(begin, begin + extent_of(tensor) * item);
  };
  const auto [left_begin, left_end] = range(left);
  const auto [right_begin, right_end] = range(right);
  return left_begin < right_end && right_begin < left_end;
}

}  // namespace

std::int64_t extent_of(const Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t extent = 1;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    extent += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return extent;
}

bool overlaps_internally(const Tensor& tensor) {
  if (tensor.numel() < 2 || tensor.is_non_overlapping_and_dense()) return false;
  const std::vector<Dimension> dimensions = dimensions_of(tensor);
  if (is_nested(dimensions)) return false;
  const std::int64_t extent = extent_of(tensor);
  if (extent < tensor.numel()) return true;
  std::vector<bool> is_taken(static_cast<std::size_t>(extent));
  return any_element(dimensions, [&](std::int64_t place) {
    const bool was_taken = is_taken[static_cast<std::size_t>(place)];
    is_taken[static_cast<std::size_t>(place)] = true;
    return was_taken;
  });
}

bool has_same_elements(const Tensor& left, const Tensor& right) {
  return are_in_one_storage(left, right) && left.storage_offset() == right.storage_offset() &&
         left.itemsize() == right.itemsize() && left.sizes() == right.sizes() &&
         left.strides() == right.strides();
}

bool overlap(const Tensor& left, const Tensor& right) {
  if (!are_in_one_storage(left, right) || left.numel() == 0 || right.numel() == 0) return false;
  if (!ranges_intersect(left, right)) return false;
  if (left.itemsize() != right.itemsize() || has_same_elements(left, right)) return true;
  const std::int64_t extent = extent_of(left);
  std::vector<bool> is_left(static_cast<std::size_t>(extent));
  any_element(dimensions_of(left), [&](std::int64_t place) {
    is_left[static_cast<std::size_t>(place)] = true;
    return false;
  });
  const std::int64_t offset = right.storage_offset() - left.storage_offset();
  return any_element(dimensions_of(right), [&](std::int64_t place) {
    const std::int64_t at = place + offset;
    return at >= 0 && at < extent && is_left[static_cast<std::size_t>(at)];
  });
}

}  // namespace assay::aten
