/// \file Executes a kernel without a compiler, instruction by instruction: the reference for
/// emitted code, and what the option `interpret` runs to tell a wrong lowering from wrong code.
#pragma once

#include <span>

#include "kernels/ir.h"

namespace assay::kernels {

/// Runs all of a kernel. `buffers` has a pointer per buffer of the program (those of scratch
/// buffers are ignored). Returns nullptr, or the message of the check that failed.
const char* interpret(const Kernel& kernel, const LoopProgram& program,
                      std::span<void* const> buffers);

}  // namespace assay::kernels
