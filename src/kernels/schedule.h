/// \file How each kernel's loops run: their order, which loop is vectors, and whether more than one
/// thread is worth it. Also gives kernels their names.
#pragma once

#include "kernels/ir.h"
#include "kernels/step_pipeline.h"

namespace assay::kernels {

void schedule(LoopProgram& program, StepContext& context);

}  // namespace assay::kernels
