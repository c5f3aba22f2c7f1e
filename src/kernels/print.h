/// \file The text of a loop program, as the debug directory and TORCH_LOGS show it: buffers, then
/// one paragraph per step, in the style of inductor's listing of scheduler nodes.
#pragma once

#include <string>

#include "kernels/ir.h"

namespace assay::kernels {

std::string print(const LoopProgram& program);
std::string print(const Kernel& kernel, const LoopProgram& program);

}  // namespace assay::kernels
