/// \file Two kernels as one: their outer loops are made equal, and at each point of these the
/// passes of the first run before those of the second. merge_kernels.cpp decides which to try.
#pragma once

#include <optional>

#include "kernels/ir.h"

namespace assay::kernels {

/// The merged kernel; nothing if `second`, which may read what `first` writes, cannot run beside it
/// point by point, or if that would be slower.
std::optional<Kernel> merge_pair(const Kernel& first, const Kernel& second);

/// No inner loops, and nothing that depends on the order of points.
bool is_pointwise(const Kernel& kernel);

/// Stores to addresses that are computed: its points are in order, so it is left alone.
bool is_ordered(const Kernel& kernel);

}  // namespace assay::kernels
