/// \file What TORCH_LOGS says about a compiled program: `schedule` and `perf_hints`. Called by
/// compile.cpp.
#pragma once

#include <string>

#include "kernels/ir.h"

namespace assay::kernels {

/// The order of kernels and ATen calls, one line each, with loops, vectors and threads.
std::string schedule_text(const LoopProgram& program);

/// What keeps the program from being faster: calls that are not lowered, with the reason, and
/// kernels without vectors. Empty if there is nothing.
std::string perf_hints_text(const LoopProgram& program);

}  // namespace assay::kernels
