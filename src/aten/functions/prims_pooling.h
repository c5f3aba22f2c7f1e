/// \file The prims of inductor's max pooling, which keep one byte per window (the place of the
/// largest value in it) instead of an index into the input.
#pragma once

#include "aten/torch_functions.h"

namespace assay::aten {

/// prims._low_memory_max_pool_with_offsets: the values and the offsets in their windows.
Value max_pool_with_offsets(const BoundArguments& arguments);
/// prims._low_memory_max_pool_offsets_to_indices: what max_pool2d's backward wants.
Value max_pool_offsets_to_indices(const BoundArguments& arguments);
/// prims._low_memory_max_pool2d_offsets_to_indices, which knows only the widths.
Value max_pool2d_offsets_to_indices(const BoundArguments& arguments);

}  // namespace assay::aten
