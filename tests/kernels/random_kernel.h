/// \file Random kernels of the loop IR, to be compared with the interpreter.
#pragma once

#include <random>

#include "kernels/ir.h"

namespace assay::kernels {

struct RandomKernelOptions {
  Kernel::Vectorize vectorize = Kernel::Vectorize::none;
  int instructions = 12;
};

/// Adds a kernel of random loops, accesses and operations to the program, with buffers of its own.
/// Whatever it computes is exact, so that every correct implementation gives the same bits.
void add_random_kernel(LoopProgram& program, std::mt19937& random,
                       const RandomKernelOptions& options);

}  // namespace assay::kernels
