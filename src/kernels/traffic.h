/// \file How much memory a step touches: for the profile, and for fusion, which is worth what it
/// saves.
#pragma once

#include <cstdint>

#include "kernels/ir.h"

namespace assay::kernels {

/// Bytes read and written, each element once.
std::int64_t bytes_moved(const Kernel& kernel, const LoopProgram& program);
std::int64_t bytes_moved(const ExternCall& call, const LoopProgram& program);

}  // namespace assay::kernels
