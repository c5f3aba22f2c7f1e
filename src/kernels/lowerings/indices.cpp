#include "kernels/lowerings/indices.h"

namespace assay::kernels {

using c10::ScalarType;

Value checked_offset(Body& body, Value index, std::int64_t size, std::int64_t stride, bool wraps) {
  Value position = body.cast(index, ScalarType::Long);
  const auto number = [&](std::int64_t value) { return body.constant(value, ScalarType::Long); };
  if (wraps) position = where(position < number(0), position + number(size), position);
  body.check((position >= number(0)) & (position < number(size)), "index out of range");
  return stride == 1 ? position : position * number(stride);
}

AdvancedIndex::AdvancedIndex(const TensorRef& self, std::vector<std::optional<TensorRef>> indices)
    : self_(self), indices_(std::move(indices)) {
  const std::size_t rank = self.sizes.size();
  indices_.resize(rank);
  std::size_t first = rank;
  std::size_t last = 0;
  std::size_t count = 0;
  std::size_t index_rank = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!indices_[i]) continue;
    if (!c10::isIntegralType(indices_[i]->dtype, false) || indices_[i]->dtype == ScalarType::Byte) {
      refusal_ = "indexed by a mask";
      return;
    }
    first = std::min(first, i);
    last = i;
    ++count;
    index_rank = std::max(index_rank, indices_[i]->sizes.size());
  }
  index_sizes_.assign(index_rank, 1);
  for (const auto& index : indices_) {
    if (!index) continue;
    const std::size_t added = index_rank - index->sizes.size();
    for (std::size_t k = 0; k < index->sizes.size(); ++k) {
      if (index->sizes[k] != 1) index_sizes_[added + k] = index->sizes[k];
    }
  }
  // Next to each other, the indices' dimensions stand where the first one was; otherwise in front.
  const bool are_adjacent = count != 0 && last - first + 1 == count;
  plain_.offset = self.offset;
  const auto add_indices = [&] {
    first_index_loop_ = sizes_.size();
    sizes_.append(index_sizes_.begin(), index_sizes_.end());
    plain_.coefficients.append(index_sizes_.size(), 0);
  };
  if (!are_adjacent) add_indices();
  for (std::size_t i = 0; i < rank; ++i) {
    if (are_adjacent && i == first) add_indices();
    if (indices_[i]) continue;
    sizes_.push_back(self.sizes[i]);
    plain_.coefficients.push_back(self.strides[i]);
  }
}

Value AdvancedIndex::offset(Body& body) const {
  std::optional<Value> sum;
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    if (!indices_[i]) continue;
    const TensorRef index = expand(*indices_[i], index_sizes_);
    std::vector<std::size_t> loops(index_sizes_.size());
    for (std::size_t k = 0; k < loops.size(); ++k) loops[k] = first_index_loop_ + k;
    const Value loaded = body.load(index, Body::index_of(index, loops));
    const Value offset = checked_offset(body, loaded, self_.sizes[i], self_.strides[i], true);
    sum = sum ? *sum + offset : offset;
  }
  return sum ? *sum : body.constant(0, ScalarType::Long);
}

}  // namespace assay::kernels
