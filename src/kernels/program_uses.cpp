#include "kernels/program_uses.h"

#include <algorithm>
namespace assay::kernels {

namespace {

void add_once(std::vector<BufferId>& list, BufferId buffer) {
  if (std::ranges::find(list, buffer) == list.end()) list.push_back(buffer);
}

}  // namespace

StepUses uses_of(const Step& step) {
  StepUses uses;
  if (const auto* call = std::get_if<ExternCall>(&step)) {
    for (const auto& operand : call->operands) {
      if (const auto* tensor = std::get_if<TensorRef>(&operand))
        add_once(uses.reads, tensor->buffer);
    }
    for (BufferId result : call->results) {
      if (result != kNoBuffer) add_once(uses.writes, result);
    }
    for (BufferId written : call->writes) {
      add_once(uses.reads, written);
      add_once(uses.writes, written);
    }
    return uses;
  }
  for_each_instruction(std::get<Kernel>(step), [&](const Instruction& instruction) {
    if (reads_memory(instruction.op) || instruction.op == Op::add_indirect) {
      add_once(uses.reads, instruction.buffer);
    }
    if (writes_memory(instruction.op)) add_once(uses.writes, instruction.buffer);
  });
  return uses;
}

std::vector<bool> output_buffers(const LoopProgram& program) {
  std::vector<bool> is_output(program.buffers.size(), false);
  for (const ProgramOutput& output : program.outputs) {
    if (const auto* tensor = std::get_if<TensorRef>(&output)) is_output[tensor->buffer] = true;
  }
  return is_output;
}

std::int64_t points(const Sizes& loops) {
  std::int64_t count = 1;
  for (std::int64_t size : loops) count *= size;
  return count;
}

}  // namespace assay::kernels
