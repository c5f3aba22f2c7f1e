/// \file Keeps a row that only one kernel uses inside it: what a pass stores and a later pass loads
/// at the same point becomes a scratch buffer of one row, which stays in the cache. Called by
/// schedule.cpp for kernels whose lanes are points of a row.
#pragma once

#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

/// `is_shared` says of each buffer whether other steps or the caller need it.
void make_rows_local(Kernel& kernel, LoopProgram& program, const std::vector<bool>& is_shared);

}  // namespace assay::kernels
