/// \file Splits reductions that have few results but read much: one kernel reduces chunks, a second
/// one their results. How a reduction is cut depends on its size alone, never on the number of
/// threads, so that results do not either.
#pragma once

#include "kernels/ir.h"
#include "kernels/step_pipeline.h"

namespace assay::kernels {

void split_reductions(LoopProgram& program, StepContext& context);

}  // namespace assay::kernels
