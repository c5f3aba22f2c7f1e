/// \file Makes the passes of a merged kernel few: passes over the same loops become one where
/// nothing between them forbids it, and values that are in registers are not loaded again.
#pragma once

#include "kernels/ir.h"

namespace assay::kernels {

void combine_passes(Kernel& kernel);

}  // namespace assay::kernels
