#include "kernels/lowerings/reduction_loops.h"

namespace assay::kernels {

ReductionLoops::ReductionLoops(const TensorRef& input, const Sizes& dimensions) {
  const std::size_t rank = input.sizes.size();
  std::vector<bool> is_reduced(std::max<std::size_t>(rank, 1), dimensions.empty());
  for (const std::int64_t dimension : dimensions) {
    is_reduced[wrap_dimension(dimension, rank)] = true;
  }
  loop_of_dimension_.resize(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    if (is_reduced[i]) continue;
    loop_of_dimension_[i] = outer_.size();
    outer_.push_back(input.sizes[i]);
    kept_.push_back(i);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    if (!is_reduced[i]) continue;
    loop_of_dimension_[i] = outer_.size() + inner_.size();
    inner_.push_back(input.sizes[i]);
  }
  // A reduction needs a loop, if only of one iteration.
  if (inner_.empty()) inner_.push_back(1);
}

Index ReductionLoops::index_of(const TensorRef& ref) const {
  return Body::index_of(ref, loop_of_dimension_);
}

Index ReductionLoops::result_index(const TensorRef& result) const {
  // With the input's rank, dimensions were kept; those reduced have size 1 and no part in it.
  if (result.sizes.size() == loop_of_dimension_.size()) {
    return Body::index_of(result, loop_of_dimension_);
  }
  std::vector<std::size_t> loops(kept_.size());
  for (std::size_t i = 0; i < loops.size(); ++i) loops[i] = i;
  return Body::index_of(result, loops);
}

Index ReductionLoops::position() const {
  Index index{0, Sizes(outer_.size(), 0)};
  const Sizes strides = row_major_strides(inner_);
  index.coefficients.append(strides.begin(), strides.end());
  return index;
}

}  // namespace assay::kernels
