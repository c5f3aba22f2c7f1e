/// \file Which values of a kernel differ from point to point of one loop: an address that is
/// computed may be the same for all of them.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

/// By ValueId: whether the value differs along loop `variable`, a number as in the indices of pass
/// number `pass`.
std::vector<bool> values_that_vary(const Kernel& kernel, std::size_t pass, std::size_t variable);

/// Whether an access reads or writes at an address that was computed for each point of the loop.
bool has_varying_offset(const Instruction& access, const std::vector<bool>& varies);

}  // namespace assay::kernels
