/// \file Index tensors: wrapped, checked, and turned into offsets of elements. Used by the
/// lowerings of gathers and scatters.
#pragma once

#include <optional>
#include <vector>

#include "kernels/lowerings/call.h"

namespace assay::kernels {

/// The offset, in elements, of the position that `index` (of any integer dtype) names along a
/// dimension. Checks that it is within it; negative ones count from the end if `wraps`.
Value checked_offset(Body& body, Value index, std::int64_t size, std::int64_t stride, bool wraps);

/// How `self[indices]` is laid out: some dimensions of self are replaced by those of the indices,
/// broadcast with each other.
class AdvancedIndex {
 public:
  /// `refusal` is set if it cannot be lowered (masks).
  AdvancedIndex(const TensorRef& self, std::vector<std::optional<TensorRef>> indices);

  Refusal refusal() const { return refusal_; }
  /// The sizes of the result.
  const Sizes& sizes() const { return sizes_; }
  /// The index of the plain dimensions over loops of `sizes()`.
  const Index& plain_index() const { return plain_; }
  /// The offset that the index tensors add, at a point of those loops.
  Value offset(Body& body) const;

 private:
  TensorRef self_;
  std::vector<std::optional<TensorRef>> indices_;
  Sizes sizes_;
  Index plain_;
  std::size_t first_index_loop_ = 0;
  Sizes index_sizes_;
  Refusal refusal_ = nullptr;
};

}  // namespace assay::kernels
