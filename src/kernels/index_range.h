/// \file Between which numbers an affine index lies, over loops and under conditions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

/// Both ends are included.
struct IndexRange {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
};

/// The range of `index` over all points of `loops` (none of size 0) at which the conditions hold;
/// nothing if there is no such point. It may be wider than the exact one, but only if conditions
/// relate several loops in ways that the index does not.
std::optional<IndexRange> index_range(const Index& index, const Sizes& loops,
                                      const std::vector<Condition>& conditions = {});

}  // namespace assay::kernels
