#include "kernels/cost.h"

#include "kernels/program_uses.h"

namespace assay::kernels {

int arithmetic_cost(const Instruction& instruction) {
  const Op op = instruction.op;
  if (reads_memory(op) || writes_memory(op) || op == Op::constant || op == Op::condition) {
    return is_indirect(op) ? 4 : 0;
  }
  switch (op) {
    case Op::sqrt:
    case Op::rsqrt:
    case Op::reciprocal:
    case Op::div:
      return 4;
    case Op::div_floor:
    case Op::div_trunc:
    case Op::remainder:
    case Op::fmod:
      return 8;
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::square:
    case Op::cast:
    case Op::bitcast:
    case Op::index:
    case Op::logical_not:
    case Op::bitwise_not:
    case Op::isnan:
    case Op::isinf:
    case Op::isfinite:
    case Op::signbit:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::frac:
    case Op::where:
    case Op::fma:
    case Op::check:
      return 1;
    default:
      break;
  }
  // The other binary operators are one or two machine instructions, the other unary ones (exp, erf,
  // tanh, ...) and pow, atan2, hypot are polynomials.
  if (op >= Op::add && op <= Op::fmin) return 1;
  if (op >= Op::copysign && op <= Op::ge) return 1;
  return 12;
}

RecomputeCost recompute_cost(const Kernel& kernel) {
  RecomputeCost cost;
  for_each_instruction(kernel, [&](const Instruction& instruction) {
    cost.arithmetic += arithmetic_cost(instruction);
    if (reads_memory(instruction.op)) ++cost.loads;
    ++cost.instructions;
  });
  return cost;
}

}  // namespace assay::kernels
