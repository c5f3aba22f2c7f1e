/// \file Runs kernels with the same outer loops as one: a reduction and what uses its result,
/// several reductions over the same rows, siblings that share reads. What one of them computes and
/// another needs stays in registers, or in a row that is in the cache (local_rows.h).
#pragma once

#include "kernels/ir.h"
#include "kernels/step_pipeline.h"

namespace assay::kernels {

void merge_kernels(LoopProgram& program, StepContext& context);

}  // namespace assay::kernels
