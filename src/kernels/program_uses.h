/// \file What a program's steps read and write: asked by fusion, the memory plan and the runtime.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/instructions.h"
#include "kernels/ir.h"

namespace assay::kernels {

/// Accesses memory at an address that is computed.
inline bool is_indirect(Op op) {
  return op == Op::load_indirect || op == Op::store_indirect || op == Op::add_indirect;
}

/// Calls `visit(const Instruction&)` for every instruction of a kernel, in order.
template <typename Visit>
void for_each_instruction(const Kernel& kernel, const Visit& visit) {
  for (const Pass& pass : kernel.passes) {
    for (const Instruction& instruction : pass.body) visit(instruction);
  }
}

/// The distinct buffers that a step reads, and those that it writes, scratch rows included. A
/// buffer that is added to is both.
struct StepUses {
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
};
StepUses uses_of(const Step& step);

/// The buffers that leave the program.
std::vector<bool> output_buffers(const LoopProgram& program);

/// How many points a list of loops has.
std::int64_t points(const Sizes& loops);

}  // namespace assay::kernels
