/// \file What it costs to compute something again, in about the time of an addition: fusion's
/// measure for copying a producer.
#pragma once

#include "kernels/ir.h"

namespace assay::kernels {

/// Of one instruction, without memory.
int arithmetic_cost(const Instruction& instruction);

struct RecomputeCost {
  int arithmetic = 0;
  int loads = 0;
  int instructions = 0;
};
RecomputeCost recompute_cost(const Kernel& kernel);

}  // namespace assay::kernels
