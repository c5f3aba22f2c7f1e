/// \file Takes apart tensors that are joined of equal parts (`cat`, `stack`) and then only read
/// point by point: every part becomes a buffer of its own, and a reader computes one point of each
/// part at once. What wrote the parts can then move into the reader, and the joined tensor is never
/// in memory: rotary embeddings, `cat((-right, left))`, are the common case.
#pragma once

#include "kernels/ir.h"
#include "kernels/step_pipeline.h"

namespace assay::kernels {

void unroll_joins(LoopProgram& program, StepContext& context);

}  // namespace assay::kernels
