/// \file Which dimensions a reduction keeps (outer loops) and which it reduces (inner loops).
/// Used by the lowerings of reductions, norms and softmax.
#pragma once

#include <vector>

#include "kernels/lowerings/call.h"

namespace assay::kernels {

class ReductionLoops {
 public:
  /// `dimensions` may count from the end; all dimensions are reduced if there are none.
  ReductionLoops(const TensorRef& input, const Sizes& dimensions);

  const Sizes& outer() const { return outer_; }
  const Sizes& inner() const { return inner_; }
  /// How many elements are reduced to one.
  std::int64_t count() const { return element_count(inner_); }
  /// The index of a tensor that has the input's dimensions (of their sizes or of size 1).
  Index index_of(const TensorRef& ref) const;
  /// The index of a tensor with the kept dimensions only, or with the others of size 1.
  Index result_index(const TensorRef& result) const;
  /// The position among the reduced elements, in row-major order.
  Index position() const;

 private:
  Sizes outer_;
  Sizes inner_;
  std::vector<std::size_t> loop_of_dimension_;
  std::vector<std::size_t> kept_;
};

}  // namespace assay::kernels
