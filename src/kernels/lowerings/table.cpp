// Joins the tables of lowerings.
#include <algorithm>
#include <string>
#include <vector>

#include "assay/error.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

std::span<const Lowering> lowerings() {
  static const std::vector<Lowering> rows = [] {
    std::vector<Lowering> joined;
    for (const LoweringTable table :
         {unary_lowerings(), binary_lowerings(), comparison_lowerings(), ternary_lowerings(),
          creation_lowerings(), copy_lowerings(), reduction_lowerings(), scan_lowerings(),
          join_lowerings(), gather_lowerings(), scatter_lowerings(), pooling_lowerings(),
          resampling_lowerings(), loss_lowerings()}) {
      joined.insert(joined.end(), table.begin(), table.end());
    }
    std::ranges::sort(joined, {}, &Lowering::op);
    const auto twice = std::ranges::adjacent_find(joined, {}, &Lowering::op);
    if (twice != joined.end()) throw InternalError("two lowerings of " + std::string(twice->op));
    return joined;
  }();
  return rows;
}

}  // namespace assay::kernels
