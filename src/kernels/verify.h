/// \file Checks that a loop program is well formed; runs after every step of the pipeline.
#pragma once

#include "kernels/ir.h"

namespace assay::kernels {

/// Throws InternalError, naming the kernel and the instruction, unless: every value is defined
/// before it is used and visible there; dtypes fit their operations; every affine access is within
/// its buffer at all points of the loops at which its conditions hold; buffers are written before
/// they are read; scratch buffers stay within one kernel.
void verify(const LoopProgram& program);

}  // namespace assay::kernels
