/// \file Kernels that follow each other and do not need each other's results: threads are started
/// once for all of them. The update of an optimizer is one such run.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/ir.h"
#include "kernels/memory_plan.h"

namespace assay::kernels {

/// For each step the number of the first one after it that may not run at the same time as those
/// before. Steps that are in a run themselves have their own number plus one.
std::vector<std::size_t> ends_of_independent_runs(const LoopProgram& program,
                                                  const MemoryPlan& plan);

}  // namespace assay::kernels
