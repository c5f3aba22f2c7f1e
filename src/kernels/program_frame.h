/// \file What one call of a compiled program works with, and the call itself. Internal to
/// compiled_program.cpp, which keeps a frame from call to call.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "kernels/arena_pool.h"
#include "kernels/compiled_program.h"

namespace assay::kernels {

struct ProgramFrame {
  explicit ProgramFrame(const CompiledProgram& compiled);
  /// Before each call: the arena, which is usually where it was in the call before.
  void use_arena(const CompiledProgram& compiled, char* start);

  char* arena = nullptr;
  /// By buffer: its start, while the buffer lives.
  std::vector<void*> pointers;
  /// By buffer: the tensor, of those that are not in the arena.
  std::vector<at::Tensor> tensors;
  std::vector<c10::IValue> arena_tensors;
  std::vector<c10::IValue> values;
  std::vector<void*> arguments;
};

/// One call in a frame.
class ProgramRun {
 public:
  ProgramRun(const CompiledProgram& compiled, ProgramFrame& frame)
      : compiled_(compiled), frame_(frame) {}

  /// False, with nothing changed, if an input has a layout that the program cannot be given.
  static bool can_take(const CompiledProgram& compiled, std::span<const c10::IValue> inputs);

  void take_inputs(std::span<c10::IValue> inputs);
  /// nullptr, or the kernel whose check failed.
  const Kernel* run_steps();
  void give_outputs(Outputs& outputs);

 private:
  using Operand = CompiledProgram::Operand;
  using RunStep = CompiledProgram::RunStep;

  void set_tensor(BufferId id, at::Tensor tensor);
  void allocate(BufferId id);
  static void* sizes_of(const RunStep& step);
  int run_kernel(const RunStep& step);
  void run_call(const RunStep& step);
  c10::IValue operand(const Operand& operand);
  const Kernel* run_step(std::size_t index);
  const Kernel* run_together(std::span<const RunStep> steps);

  const CompiledProgram& compiled_;
  ProgramFrame& frame_;
};

}  // namespace assay::kernels
