/// \file Removes what fusion leaves behind: equal instructions, values and stores that nobody
/// needs, loops that can be one, kernels without effect.
#pragma once

#include "kernels/ir.h"
#include "kernels/step_pipeline.h"

namespace assay::kernels {

void simplify(LoopProgram& program, StepContext& context);

}  // namespace assay::kernels
