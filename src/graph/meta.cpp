#include "graph/meta.h"

#include <algorithm>

namespace assay::graph {

std::vector<SizeExpr> contiguous_strides(const std::vector<SizeExpr>& sizes) {
  std::vector<SizeExpr> strides(sizes.size(), SizeExpr(1));
  SizeExpr running = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = running;
    const auto constant = sizes[i].constant();
    const SizeExpr factor = constant ? SizeExpr(std::max<std::int64_t>(*constant, 1)) : sizes[i];
    running = SizeExpr::binary(SizeExpr::Operation::multiply, factor, running);
  }
  return strides;
}

}  // namespace assay::graph
