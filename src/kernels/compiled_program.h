/// \file A compiled program: a flat list of kernel calls and ATen calls over planned memory. What
/// the backend `native` gives to autograd for each half.
///
/// Everything that can be known before a call is found once, when the program is made. What a call
/// needs besides its tensors (tensors on the arena, pointers to buffers) is a frame, which is kept
/// for the next call; calls that are active at the same time have one each. The arena is borrowed.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "assay/compiler.h"
#include "aten/runner.h"
#include "kernels/arena_pool.h"
#include "kernels/emit.h"
#include "kernels/extern_call.h"
#include "kernels/ir.h"
#include "kernels/memory_plan.h"
#include "kernels/profile.h"

namespace assay::kernels {

/// A kernel as machine code, see emit.h.
using KernelFunction = int (*)(void* const* buffers, long begin, long end);

/// The code of a program's kernels. Without functions they are interpreted.
struct ProgramCode {
  std::vector<EmittedKernel> kernels;     ///< One per kernel step, in order.
  std::vector<KernelFunction> functions;  ///< One per entry of `kernels`, or none.
  /// Of each function: what it is passed after its buffers (emit/size_parameters.h), often nothing.
  std::vector<std::vector<std::int64_t>> sizes;
  std::vector<std::shared_ptr<const void>> libraries;  ///< Keep them loaded.
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

  /// Where a result of an ATen call goes: to a buffer, or to the values that are not tensors.
  struct Destination {
    BufferId buffer = kNoBuffer;
    std::uint32_t value = 0;
  };

  struct RunStep {
    // A kernel.
    const Kernel* kernel = nullptr;
    KernelFunction function = nullptr;  ///< nullptr: it is interpreted.
    std::vector<BufferId> arguments;
    std::vector<std::int64_t> sizes;  ///< Passed after them if there are any.
    std::int64_t points = 0;          ///< And units of them, see emit.h.
    std::int64_t unit = 1;
    std::int64_t units = 0;
    std::int64_t grain = 0;  ///< The fewest units that are worth a thread; 0: one thread.
    // An ATen call.
    const ExternCall* call = nullptr;
    std::vector<Operand> operands;
    OutFunction out_function = nullptr;
    OutScalars scalars;
    Operand out;
    std::unique_ptr<const ExternRunner> runner;
    std::vector<Destination> destinations;  ///< Of what the runner appends.
    StepDescription description;
    /// The steps from here to that one are kernels that may run at the same time, and some of them
    /// are worth several threads. Otherwise the next step.
    std::size_t end_of_run = 0;
  };

  static constexpr std::uint32_t kNoSuchValue = UINT32_MAX;
  struct Input {
    BufferId buffer = kNoBuffer;  ///< Of a tensor.
    std::uint32_t value = kNoSuchValue;
  };
  /// The tensor is all of its buffer, as the buffer lies in memory.
  static bool is_whole(const TensorRef& tensor, const Buffer& buffer);

  void find_values();
  void plan_inputs();
  void plan_steps(const ProgramCode& code);
  void plan_runs();
  void plan_kernel(RunStep& step, const Kernel& kernel, const EmittedKernel& emitted);
  void plan_call(RunStep& step, std::size_t index, const ExternCall& call);
  void plan_results(RunStep& step, const ExternCall& call);
  Operand plan_operand(const TensorRef& tensor);
  void describe(RunStep& step) const;

  std::unique_ptr<ProgramFrame> take_frame() const;
  void keep_frame(std::unique_ptr<ProgramFrame> frame) const;
  /// The graph, run operator by operator.
  const aten::GraphRunner& eager() const;
  [[noreturn]] void raise_as_eager(std::span<c10::IValue> inputs, const Kernel& kernel) const;

  LoopProgram program_;
  MemoryPlan plan_;
  ArenaDemand arena_demand_;
  std::vector<std::shared_ptr<const void>> libraries_;
  const graph::python::Source* source_;
  std::vector<Input> inputs_;
  std::vector<RunStep> steps_;
  /// The tensors on the arena that ATen calls take.
  std::vector<TensorRef> arena_tensors_;
  std::vector<bool> is_used_by_kernel_;  ///< By buffer.
  std::vector<BufferId> kept_buffers_;   ///< Those whose tensors no step releases.
  /// By node: where its value is, if that is not a tensor and something needs it.
  std::unordered_map<const graph::Node*, std::uint32_t> values_;
  /// A kernel may raise; then the inputs are needed to raise as eager does.
  bool has_checks_ = false;
  std::size_t largest_arguments_ = 0;
  mutable std::once_flag eager_made_;
  mutable std::unique_ptr<const aten::GraphRunner> eager_;
  mutable std::atomic<ProgramFrame*> idle_frame_ = nullptr;  // owned
};

}  // namespace assay::kernels
