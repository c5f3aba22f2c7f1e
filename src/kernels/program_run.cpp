#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <atomic>

#include "assay/error.h"
#include "aten/current_node.h"
#include "aten/runner.h"
#include "kernels/interpret.h"
#include "kernels/program_frame.h"
#include "observe/clock.h"

namespace assay::kernels {

namespace {

c10::IntArrayRef array(const Sizes& sizes) { return {sizes.data(), sizes.size()}; }

// The same addresses for the same elements; what a dimension of one element has as stride does not
// matter.
bool has_layout(const at::Tensor& tensor, const Sizes& sizes, const Sizes& strides) {
  const c10::IntArrayRef actual = tensor.strides();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (actual[i] != strides[i] && sizes[i] > 1) return tensor.numel() == 0;
  }
  return true;
}

// Two elements in one place: nothing can be copied into such a layout.
bool overlaps_itself(const Buffer& buffer) {
  for (std::size_t i = 0; i < buffer.sizes.size(); ++i) {
    if (buffer.sizes[i] > 1 && buffer.strides[i] == 0) return true;
  }
  return false;
}

[[noreturn]] void throw_unexpected(const at::Tensor& tensor, const Buffer& buffer) {
  std::string text = "the tensor '" + buffer.name + "' was compiled as " +
                     c10::toString(buffer.dtype) + " of sizes [";
  for (std::int64_t size : buffer.sizes) text += std::to_string(size) + ", ";
  text += "], but is " + std::string(c10::toString(tensor.scalar_type())) + " of sizes [";
  for (std::int64_t size : tensor.sizes()) text += std::to_string(size) + ", ";
  throw InternalError(text + "]");
}

at::Tensor view_of(const at::Tensor& tensor, const TensorRef& ref) {
  return at::native::as_strided_tensorimpl(tensor, array(ref.sizes), array(ref.strides),
                                           tensor.storage_offset() + ref.offset);
}

// A kernel and its buffers. It is called for units; it counts in points.
struct BoundKernel {
  KernelFunction function;
  void* const* buffers;
  std::int64_t points;
  std::int64_t unit;

  int operator()(std::int64_t begin, std::int64_t end) const {
    return function(buffers, begin * unit, std::min(end * unit, points));
  }
};

struct KernelRange {
  BoundKernel kernel;
  std::atomic<int> failed = 0;
};

void run_range(std::int64_t begin, std::int64_t end, void* context) {
  auto& range = *static_cast<KernelRange*>(context);
  const int failed = range.kernel(begin, end);
  if (failed != 0) range.failed.store(failed, std::memory_order_relaxed);
}

// Some kernels, cut into as many parts as there are threads. Small ones are not cut.
struct KernelRun {
  struct Member {
    BoundKernel kernel;
    std::int64_t units;
    bool is_cut;
  };
  c10::SmallVector<Member, 16> members = {};
  std::int64_t parts = 1;
  std::atomic<std::size_t> failed = kNone;
  static constexpr std::size_t kNone = SIZE_MAX;
};

void run_part(std::int64_t begin, std::int64_t end, void* context) {
  auto& run = *static_cast<KernelRun*>(context);
  for (std::int64_t part = begin; part < end; ++part) {
    for (std::size_t k = 0; k < run.members.size(); ++k) {
      const KernelRun::Member& member = run.members[k];
      const bool is_mine = static_cast<std::int64_t>(k) % run.parts == part;
      if (!member.is_cut && !is_mine) continue;
      const std::int64_t from = member.is_cut ? member.units * part / run.parts : 0;
      const std::int64_t to = member.is_cut ? member.units * (part + 1) / run.parts : member.units;
      if (from < to && member.kernel(from, to) != 0) {
        run.failed.store(k, std::memory_order_relaxed);
      }
    }
  }
}

}  // namespace

ProgramFrame::ProgramFrame(const CompiledProgram& compiled)
    : pointers(compiled.program_.buffers.size()),
      tensors(compiled.program_.buffers.size()),
      values(compiled.values_.size()),
      arguments(compiled.largest_arguments_) {
  const c10::InferenceMode no_inference(false);  // the tensors are for calls in any mode
  for (const TensorRef& ref : compiled.arena_tensors_) {
    arena_tensors.emplace_back(
        at::from_blob(nullptr, array(ref.sizes), array(ref.strides), at::TensorOptions(ref.dtype)));
  }
}

void ProgramFrame::use_arena(const CompiledProgram& compiled, char* start) {
  if (start == arena) return;
  arena = start;
  for (std::size_t id = 0; id < pointers.size(); ++id) {
    const Place& place = compiled.plan_.places[id];
    if (place.storage == Storage::arena) pointers[id] = start + place.offset;
  }
  for (std::size_t i = 0; i < arena_tensors.size(); ++i) {
    const TensorRef& ref = compiled.arena_tensors_[i];
    char* data = static_cast<char*>(pointers[ref.buffer]) +
                 ref.offset * static_cast<std::int64_t>(c10::elementSize(ref.dtype));
    arena_tensors[i].toTensor().storage().set_data_ptr_noswap(at::DataPtr(data, at::kCPU));
  }
}

bool ProgramRun::can_take(const CompiledProgram& compiled, std::span<const c10::IValue> inputs) {
  for (std::size_t i = 0; i < compiled.inputs_.size(); ++i) {
    const CompiledProgram::Input& input = compiled.inputs_[i];
    if (input.buffer == kNoBuffer || !inputs[i].isTensor()) continue;
    const Buffer& buffer = compiled.program_.buffers[input.buffer];
    const at::Tensor& tensor = inputs[i].toTensor();
    if (tensor.defined() && tensor.layout() == c10::kStrided &&
        tensor.sizes() == array(buffer.sizes) &&
        !has_layout(tensor, buffer.sizes, buffer.strides) && overlaps_itself(buffer)) {
      return false;
    }
  }
  return true;
}

// The tensor that a buffer is from now on: the caller's, or an operator's result. One that has
// another layout than when the graph was traced is copied.
void ProgramRun::set_tensor(BufferId id, at::Tensor tensor) {
  const Buffer& buffer = compiled_.program_.buffers[id];
  if (tensor.defined() && tensor.layout() == c10::kStrided) {
    if (tensor.scalar_type() != buffer.dtype || tensor.sizes() != array(buffer.sizes)) {
      throw_unexpected(tensor, buffer);
    }
    if (compiled_.is_used_by_kernel_[id] && tensor.is_neg()) tensor = tensor.resolve_neg();
    if (!has_layout(tensor, buffer.sizes, buffer.strides)) {
      at::Tensor copy =
          at::detail::empty_strided_cpu(array(buffer.sizes), array(buffer.strides), buffer.dtype);
      copy.copy_(tensor);
      tensor = std::move(copy);
    }
    frame_.pointers[id] = const_cast<void*>(tensor.const_data_ptr());
  } else {
    internal_check(!compiled_.is_used_by_kernel_[id], "a kernel reads a tensor without memory");
  }
  frame_.tensors[id] = std::move(tensor);
}

void ProgramRun::allocate(BufferId id) {
  const Buffer& buffer = compiled_.program_.buffers[id];
  at::Tensor tensor =
      at::detail::empty_strided_cpu(array(buffer.sizes), array(buffer.strides), buffer.dtype);
  frame_.pointers[id] = tensor.mutable_data_ptr();
  frame_.tensors[id] = std::move(tensor);
}

void ProgramRun::take_inputs(std::span<c10::IValue> inputs) {
  for (std::size_t i = 0; i < compiled_.inputs_.size(); ++i) {
    const CompiledProgram::Input& input = compiled_.inputs_[i];
    if (input.buffer != kNoBuffer) {
      internal_check(inputs[i].isTensor(), "an input that was a tensor when compiled is a tensor");
      set_tensor(input.buffer, std::move(inputs[i]).toTensor());
    } else if (input.value != CompiledProgram::kNoSuchValue) {
      frame_.values[input.value] = std::move(inputs[i]);
    }
  }
}

const Kernel* ProgramRun::run_steps() {
  const aten::CurrentNodeScope keep;
  Profile* const profile = current_profile();
  const bool has_threads = profile == nullptr && at::get_num_threads() > 1;
  for (std::size_t i = 0; i < compiled_.steps_.size(); ++i) {
    if (const std::size_t end = compiled_.steps_[i].end_of_run; has_threads && end > i + 1) {
      for (std::size_t k = i; k < end; ++k) {
        for (BufferId id : compiled_.plan_.allocated[k]) allocate(id);
      }
      if (const Kernel* failed = run_together({&compiled_.steps_[i], end - i})) return failed;
      for (std::size_t k = i; k < end; ++k) {
        for (BufferId id : compiled_.plan_.released[k]) frame_.tensors[id].reset();
      }
      i = end - 1;
      continue;
    }
    for (BufferId id : compiled_.plan_.allocated[i]) allocate(id);
    const std::int64_t start = profile == nullptr ? 0 : observe::monotonic_now();
    if (const Kernel* failed = run_step(i)) return failed;
    if (profile != nullptr) {
      profile->add(&compiled_, i, compiled_.steps_[i].description,
                   observe::monotonic_now() - start);
    }
    for (BufferId id : compiled_.plan_.released[i]) frame_.tensors[id].reset();
  }
  return nullptr;
}

const Kernel* ProgramRun::run_step(std::size_t index) {
  const RunStep& step = compiled_.steps_[index];
  if (step.call != nullptr) {
    aten::current_node = step.call->node;
    run_call(step);
    return nullptr;
  }
  aten::current_node = step.kernel->nodes.empty() ? nullptr : step.kernel->nodes.front();
  return run_kernel(step) == 0 ? nullptr : step.kernel;
}

// Kernels only read them.
void* ProgramRun::sizes_of(const RunStep& step) {
  return const_cast<std::int64_t*>(step.sizes.data());
}

int ProgramRun::run_kernel(const RunStep& step) {
  if (step.function == nullptr) {
    return interpret(*step.kernel, compiled_.program_, frame_.pointers) == nullptr ? 0 : 1;
  }
  for (std::size_t i = 0; i < step.arguments.size(); ++i) {
    frame_.arguments[i] = frame_.pointers[step.arguments[i]];
  }
  if (!step.sizes.empty()) frame_.arguments[step.arguments.size()] = sizes_of(step);
  if (step.grain == 0 || step.units <= step.grain) {
    return step.function(frame_.arguments.data(), 0, step.points);
  }
  KernelRange range{{step.function, frame_.arguments.data(), step.points, step.unit}};
  const AOTITorchError error = torch_parallel_for(0, step.units, step.grain, &run_range, &range);
  internal_check(error == AOTI_TORCH_SUCCESS, "a kernel does not throw");
  return range.failed.load();
}

const Kernel* ProgramRun::run_together(std::span<const RunStep> steps) {
  aten::current_node = steps[0].kernel->nodes.empty() ? nullptr : steps[0].kernel->nodes.front();
  KernelRun run;
  run.parts = at::get_num_threads();
  void** next = frame_.arguments.data();
  for (const RunStep& step : steps) {
    const bool is_cut = step.grain > 0 && step.units > step.grain;
    run.members.push_back({{step.function, next, step.points, step.unit}, step.units, is_cut});
    for (BufferId id : step.arguments) *next++ = frame_.pointers[id];
    if (!step.sizes.empty()) *next++ = sizes_of(step);
  }
  const AOTITorchError error = torch_parallel_for(0, run.parts, 1, &run_part, &run);
  internal_check(error == AOTI_TORCH_SUCCESS, "a kernel does not throw");
  const std::size_t failed = run.failed.load();
  return failed == KernelRun::kNone ? nullptr : steps[failed].kernel;
}

c10::IValue ProgramRun::operand(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::arena:
      return frame_.arena_tensors[operand.index];
    case Operand::Kind::tensor:
      if (operand.is_last_use) return std::move(frame_.tensors[operand.index]);
      return frame_.tensors[operand.index];
    case Operand::Kind::view:
      return view_of(frame_.tensors[operand.index], operand.view);
    case Operand::Kind::value:
      return frame_.values[operand.index];
  }
  return {};
}

void ProgramRun::run_call(const RunStep& step) {
  c10::SmallVector<c10::IValue, 6> operands;
  for (const Operand& wanted : step.operands) operands.push_back(operand(wanted));
  if (step.out_function != nullptr) {
    c10::IValue out = operand(step.out);
    try {
      step.out_function({operands, step.scalars.beta, step.scalars.alpha}, out.toTensor());
    } catch (const c10::Error& error) {
      throw aten::OperatorError(*step.call->node, error.what_without_backtrace());
    }
    return;
  }
  c10::SmallVector<c10::IValue, 4> results;
  step.runner->run(operands, results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CompiledProgram::Destination& to = step.destinations[i];
    if (to.buffer != kNoBuffer) {
      set_tensor(to.buffer, std::move(results[i]).toTensor());
    } else {
      frame_.values[to.value] = std::move(results[i]);
    }
  }
}

void ProgramRun::give_outputs(Outputs& outputs) {
  const std::size_t first = outputs.size();
  for (const ProgramOutput& output : compiled_.program_.outputs) {
    if (const auto* ref = std::get_if<TensorRef>(&output)) {
      const Buffer& buffer = compiled_.program_.buffers[ref->buffer];
      if (!frame_.tensors[ref->buffer].defined() && buffer.elements == 0 &&
          buffer.kind == Buffer::Kind::intermediate) {
        allocate(ref->buffer);
      }
      const at::Tensor& tensor = frame_.tensors[ref->buffer];
      // What is returned twice is two tensors that share their memory.
      const bool is_given =
          std::any_of(outputs.begin() + static_cast<std::ptrdiff_t>(first), outputs.end(),
                      [&](const c10::IValue& given) {
                        return given.isTensor() && given.toTensor().is_same(tensor);
                      });
      const bool is_itself = CompiledProgram::is_whole(*ref, buffer) && !is_given;
      outputs.push_back(is_itself ? tensor : view_of(tensor, *ref));
    } else if (const auto* node = std::get_if<const graph::Node*>(&output)) {
      outputs.push_back(frame_.values[compiled_.values_.at(*node)]);
    } else {
      outputs.push_back(std::get<c10::IValue>(output));
    }
  }
  // The frame is kept for the next call, but nothing that was computed in this one.
  for (BufferId id : compiled_.kept_buffers_) frame_.tensors[id].reset();
  for (c10::IValue& value : frame_.values) value = c10::IValue();
}

}  // namespace assay::kernels
