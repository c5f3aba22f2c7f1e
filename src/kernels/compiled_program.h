/// \file A compiled program: a flat list of kernel calls and ATen calls over planned memory. What
/// the backend `native` gives to autograd for each half.
///
/// Everything that can be known before a call is found once, when the program is made. What a call
/// needs besides its tensors (the arena, tensors on it, the kernels' arguments) is a frame, which is
/// kept for the next call; calls that are active at the same time have one each.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "assay/compiler.h"
#include "aten/runner.h"
#include "kernels/extern_call.h"
#include "kernels/ir.h"
#include "kernels/memory_plan.h"
#include "kernels/profile.h"

namespace assay::kernels {

/// A kernel as machine code: `buffers` in the order of kernel_buffers(). Gives 0, or 1 + the number
/// of the check that failed.
using KernelFunction = int (*)(void* const* buffers, long begin, long end);

/// The code of a program's kernels. A program without it is interpreted.
struct ProgramCode {
  std::vector<KernelFunction> functions;  ///< One per kernel step, in order.
  std::shared_ptr<const void> library;    ///< Keeps them loaded.
};

struct ProgramFrame;

class CompiledProgram : public CompiledGraph {
 public:
  CompiledProgram(LoopProgram program, MemoryPlan plan, ProgramCode code,
                  const graph::python::Source* source);
  ~CompiledProgram() override;

  void call(std::span<c10::IValue> inputs, Outputs& outputs) const override;

  const LoopProgram& program() const { return program_; }
  const MemoryPlan& memory() const { return plan_; }

 private:
  friend struct ProgramFrame;
  friend class ProgramRun;

  /// Where an operand of an ATen call comes from.
  struct Operand {
    enum class Kind : std::uint8_t {
      arena,   ///< A tensor on the arena, made with the frame.
      tensor,  ///< A buffer's own tensor.
      view,    ///< A view of a buffer's tensor.
      value,   ///< Something that is not a tensor.
    };
    Kind kind = Kind::value;
    bool is_last_use = false;
    std::uint32_t index = 0;  ///< Of the arena tensor, the buffer, or the value.
    TensorRef view;
  };

  struct RunStep {
    // A kernel: its arguments are a part of the frame's.
    const Kernel* kernel = nullptr;
    KernelFunction function = nullptr;
    std::uint32_t first_argument = 0;
    std::uint32_t argument_count = 0;
    std::int64_t units = 0;
    std::int64_t grain = 0;
    // An ATen call.
    const ExternCall* call = nullptr;
    std::vector<Operand> operands;
    OutFunction out_function = nullptr;
    OutScalars scalars;
    Operand out;
    std::unique_ptr<const ExternRunner> runner;
    std::uint32_t value = 0;  ///< Where a result that is not a tensor goes.
    StepDescription description;
  };

  struct Input {
    bool is_tensor = false;
    BufferId buffer = 0;
    std::uint32_t value = 0;
  };

  void plan_inputs();
  void plan_steps(const ProgramCode& code, const graph::python::Source* source);
  void plan_kernel(RunStep& step, const Kernel& kernel, KernelFunction function);
  void plan_call(RunStep& step, std::size_t index, const ExternCall& call,
                 const graph::python::Source* source);
  Operand plan_operand(const TensorRef& tensor);
  std::uint32_t value_of(const graph::Node& node);
  void describe(RunStep& step) const;

  std::unique_ptr<ProgramFrame> take_frame() const;
  void keep_frame(std::unique_ptr<ProgramFrame> frame) const;
  void run_by_aten(std::span<c10::IValue> inputs, Outputs& outputs, const Kernel& kernel,
                   int check) const;

  LoopProgram program_;
  MemoryPlan plan_;
  std::shared_ptr<const void> library_;
  const graph::python::Source* source_;
  std::vector<Input> inputs_;
  std::vector<RunStep> steps_;
  /// The tensors on the arena that ATen calls take.
  std::vector<TensorRef> arena_tensors_;
  /// Each kernel's arguments, one after the other: the buffers.
  std::vector<BufferId> arguments_;
  /// By buffer: where it is among the arguments.
  std::vector<std::vector<std::uint32_t>> argument_places_;
  std::vector<bool> is_read_by_kernel_;
  std::unordered_map<const graph::Node*, std::uint32_t> values_;
  /// A kernel may raise; then the inputs are needed to raise as eager does.
  bool has_checks_ = false;
  mutable std::atomic<ProgramFrame*> idle_frame_ = nullptr;  // owned
};

}  // namespace assay::kernels
