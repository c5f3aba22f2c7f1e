/// \file Finds kernels that do the same with other buffers, so that one function serves them all:
/// the layers of a model, the tensors of an optimizer.
#pragma once

#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

/// Kernels whose machine code is the same if buffer k of one is taken for buffer k of another.
struct SameKernels {
  struct Member {
    const Kernel* kernel = nullptr;
    std::size_t number = 0;              ///< Counted over the program's kernels.
    std::vector<BufferId> buffers = {};  ///< In order of first mention, scratch included.
  };
  std::vector<Member> members;
};

/// All kernels of the program, those that are the same together, in the order of the first ones.
std::vector<SameKernels> same_kernels(const LoopProgram& program);

}  // namespace assay::kernels
