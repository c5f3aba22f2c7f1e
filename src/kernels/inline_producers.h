/// \file Copies a pointwise producer's instructions into its consumers, so that its result is never
/// in memory. A consumer may read through any view whose index can be inverted (index_map.h):
/// transposed, sliced, broadcast, padded, joined.
///
/// A producer with one consumer always moves. One with several, or one whose elements a consumer
/// reads again and again, is copied only if it is cheaper to compute than to load. Reductions and
/// scans never move.
#pragma once

#include "kernels/ir.h"
#include "kernels/step_pipeline.h"

namespace assay::kernels {

void inline_producers(LoopProgram& program, StepContext& context);

}  // namespace assay::kernels
