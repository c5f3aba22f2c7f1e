#include "kernels/varying.h"

#include <algorithm>

#include "kernels/instructions.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

std::vector<bool> values_that_vary(const Kernel& kernel, std::size_t pass, std::size_t variable) {
  const bool is_outer = variable < kernel.outer.size();
  std::vector<bool> varies;
  for (std::size_t i = 0; i < kernel.passes.size(); ++i) {
    for (const Instruction& instruction : kernel.passes[i].body) {
      // Inner loops of other passes have the same numbers.
      const auto follows = [&](const Index& index) {
        return (is_outer || i == pass) && index.coefficient(variable) != 0;
      };
      bool result = follows(instruction.index) ||
                    std::ranges::any_of(instruction.conditions, [&](const Condition& condition) {
                      return follows(condition.index);
                    });
      for (const ValueId operand : instruction.operands) {
        result = result || (operand != kNoValue && varies[operand]);
      }
      const bool is_result_of_loop = !is_outer && is_reduction(instruction.op);
      varies.push_back(result && !is_result_of_loop);
    }
  }
  return varies;
}

bool has_varying_offset(const Instruction& access, const std::vector<bool>& varies) {
  return is_indirect(access.op) && varies[access.operands[reads_memory(access.op) ? 0 : 1]];
}

}  // namespace assay::kernels
