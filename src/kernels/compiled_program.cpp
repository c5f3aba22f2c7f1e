#include "kernels/compiled_program.h"

#include <algorithm>
#include <unordered_set>

#include "assay/error.h"
#include "kernels/independent_steps.h"
#include "kernels/program_frame.h"
#include "kernels/program_uses.h"
#include "kernels/traffic.h"

namespace assay::kernels {

namespace {

// A thread is worth this many points of a kernel's loops.
constexpr std::int64_t kPointsPerThread = 8192;

const graph::Node* getitem_source(const graph::Node& node) {
  return node.calls("operator.getitem") && node.args().size() == 2 ? node.args()[0].node()
                                                                   : nullptr;
}

}  // namespace

CompiledProgram::CompiledProgram(LoopProgram program, MemoryPlan plan, ProgramCode code,
                                 const graph::python::Source* source)
    : program_(std::move(program)),
      plan_(std::move(plan)),
      arena_demand_(static_cast<std::size_t>(plan_.arena_bytes)),
      libraries_(std::move(code.libraries)),
      source_(source) {
  find_values();
  plan_inputs();
  plan_steps(code);
  plan_runs();
  std::unordered_set<BufferId> released;
  for (const auto& list : plan_.released) released.insert(list.begin(), list.end());
  for (BufferId id = 0; id < program_.buffers.size(); ++id) {
    const Storage storage = plan_.places[id].storage;
    if (storage != Storage::arena && !released.contains(id) &&
        program_.buffers[id].kind != Buffer::Kind::scratch) {
      kept_buffers_.push_back(id);
    }
  }
}

CompiledProgram::~CompiledProgram() { delete idle_frame_.load(); }

bool CompiledProgram::is_whole(const TensorRef& tensor, const Buffer& buffer) {
  return tensor.offset == 0 && tensor.dtype == buffer.dtype && tensor.sizes == buffer.sizes &&
         tensor.strides == buffer.strides;
}

// The nodes whose values are not tensors, and are mentioned by a call or are an output.
void CompiledProgram::find_values() {
  const auto add = [&](const graph::Node* node) {
    values_.try_emplace(node, static_cast<std::uint32_t>(values_.size()));
  };
  for (const Step& step : program_.steps) {
    const auto* call = std::get_if<ExternCall>(&step);
    if (call == nullptr) continue;
    for (const MentionedNode& mentioned : mentioned_nodes(*call)) {
      if (!std::holds_alternative<TensorRef>(call->operands[mentioned.position])) {
        add(mentioned.node);
      }
    }
  }
  for (const ProgramOutput& output : program_.outputs) {
    if (const auto* node = std::get_if<const graph::Node*>(&output)) add(*node);
  }
}

void CompiledProgram::plan_inputs() {
  const auto placeholders = program_.graph->placeholders();
  internal_check(placeholders.size() == program_.inputs.size(), "one entry per placeholder");
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    Input& input = inputs_.emplace_back();
    input.buffer = program_.inputs[i];
    if (const auto found = values_.find(placeholders[i]); found != values_.end()) {
      input.value = found->second;
    }
  }
}

void CompiledProgram::plan_steps(const ProgramCode& code) {
  is_used_by_kernel_.assign(program_.buffers.size(), false);
  steps_.reserve(program_.steps.size());
  std::size_t next_kernel = 0;
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    RunStep& step = steps_.emplace_back();
    if (const auto* kernel = std::get_if<Kernel>(&program_.steps[i])) {
      plan_kernel(step, *kernel, code.kernels[next_kernel]);
      if (!code.functions.empty()) {
        step.function = code.functions[next_kernel];
        step.sizes = code.sizes[next_kernel];
      }
      ++next_kernel;
    } else {
      plan_call(step, i, std::get<ExternCall>(program_.steps[i]));
    }
    describe(step);
  }
}

void CompiledProgram::plan_runs() {
  const std::vector<std::size_t> ends = ends_of_independent_runs(program_, plan_);
  for (std::size_t first = 0; first < steps_.size(); ++first) {
    steps_[first].end_of_run = first + 1;
    const std::span<RunStep> run(steps_.begin() + static_cast<std::ptrdiff_t>(first),
                                 ends[first] - first);
    const auto parallel = std::ranges::count_if(
        run, [](const RunStep& step) { return step.grain > 0 && step.units > step.grain; });
    const bool can_run = run.size() > 1 && std::ranges::all_of(run, [](const RunStep& step) {
                           return step.function != nullptr;
                         });
    if (parallel == 0 || !can_run) continue;
    steps_[first].end_of_run = ends[first];
    std::size_t arguments = 0;
    for (const RunStep& step : run) arguments += step.arguments.size() + 1;
    largest_arguments_ = std::max(largest_arguments_, arguments);
  }
}

void CompiledProgram::plan_kernel(RunStep& step, const Kernel& kernel,
                                  const EmittedKernel& emitted) {
  step.kernel = &kernel;
  step.arguments = emitted.buffers;
  step.points = emitted.points;
  step.unit = emitted.unit;
  step.units = emitted.work_units();
  largest_arguments_ = std::max(largest_arguments_, step.arguments.size() + 1);
  std::int64_t inner = 0;
  for (const Pass& pass : kernel.passes) inner += std::max<std::int64_t>(points(pass.inner), 1);
  if (kernel.is_parallel && !emitted.is_serial && step.units > 1) {
    const std::int64_t all = std::max<std::int64_t>(points(kernel.outer) * inner, 1);
    step.grain = std::max<std::int64_t>(step.units * kPointsPerThread / all, 1);
  }
  for (BufferId id : step.arguments) is_used_by_kernel_[id] = true;
  for_each_instruction(kernel, [&](const Instruction& instruction) {
    has_checks_ = has_checks_ || instruction.op == Op::check;
  });
}

CompiledProgram::Operand CompiledProgram::plan_operand(const TensorRef& tensor) {
  Operand operand;
  operand.index = tensor.buffer;
  const Buffer& buffer = program_.buffers[tensor.buffer];
  if (plan_.places[tensor.buffer].storage == Storage::arena) {
    operand.kind = Operand::Kind::arena;
    operand.index = static_cast<std::uint32_t>(arena_tensors_.size());
    arena_tensors_.push_back(tensor);
  } else if (is_whole(tensor, buffer)) {
    operand.kind = Operand::Kind::tensor;
  } else {
    internal_check(tensor.dtype == buffer.dtype, "a view has the dtype of its buffer");
    operand.kind = Operand::Kind::view;
    operand.view = tensor;
  }
  return operand;
}

void CompiledProgram::plan_call(RunStep& step, std::size_t index, const ExternCall& call) {
  step.call = &call;
  for (const MentionedNode& mentioned : mentioned_nodes(call)) {
    const auto& operand = call.operands[mentioned.position];
    if (const auto* tensor = std::get_if<TensorRef>(&operand)) {
      step.operands.push_back(plan_operand(*tensor));
    } else {
      Operand& value = step.operands.emplace_back();
      value.index = values_.at(mentioned.node);
    }
  }
  for (Operand& operand : step.operands) {
    if (operand.kind != Operand::Kind::tensor) continue;
    const auto& released = plan_.released[index];
    const auto mentions = std::ranges::count_if(step.operands, [&](const Operand& other) {
      return (other.kind == Operand::Kind::tensor || other.kind == Operand::Kind::view) &&
             other.index == operand.index;
    });
    operand.is_last_use =
        mentions == 1 && std::ranges::find(released, operand.index) != released.end();
  }
  const BufferId first = call.results.empty() ? kNoBuffer : call.results[0];
  if (first != kNoBuffer && program_.buffers[first].kind == Buffer::Kind::intermediate) {
    step.out_function = find_out_function(call);
    internal_check(step.out_function != nullptr, "only calls with an out= are given their memory");
    step.scalars = out_scalars(call);
    const Buffer& buffer = program_.buffers[first];
    step.out = plan_operand({first, buffer.dtype, buffer.sizes, buffer.strides, 0});
    // One tensor mentioned twice is one operand; `out=` wants them by position.
    step.operands.clear();
    for (const auto& operand : call.operands) {
      step.operands.push_back(plan_operand(std::get<TensorRef>(operand)));
    }
    return;
  }
  plan_results(step, call);
}

void CompiledProgram::plan_results(RunStep& step, const ExternCall& call) {
  std::vector<std::optional<std::size_t>> items;
  const auto* results = std::get_if<std::vector<graph::ValueMeta>>(&call.node->meta.value.value);
  std::size_t next_item = 0;
  for (BufferId result : call.results) {
    step.destinations.push_back({.buffer = result});
    if (results == nullptr) {
      items.push_back(std::nullopt);
      continue;
    }
    while (next_item < results->size() && (*results)[next_item].tensor() == nullptr) ++next_item;
    internal_check(next_item < results->size(), "a call has no more buffers than tensors");
    items.push_back(next_item++);
  }
  if (const auto found = values_.find(call.node); found != values_.end()) {
    step.destinations.push_back({.value = found->second});
    items.push_back(std::nullopt);
  }
  for (const graph::Node* user : call.node->users()) {
    const auto found = values_.find(user);
    if (found == values_.end() || getitem_source(*user) != call.node) continue;
    const auto* position = user->args()[1].get_if<std::int64_t>();
    if (position == nullptr || *position < 0) continue;
    step.destinations.push_back({.value = found->second});
    items.push_back(static_cast<std::size_t>(*position));
  }
  step.runner = std::make_unique<const ExternRunner>(call, *program_.graph, items, source_);
}

void CompiledProgram::describe(RunStep& step) const {
  StepDescription& description = step.description;
  description.graph = program_.name;
  description.is_kernel = step.kernel != nullptr;
  std::vector<const graph::Node*> nodes;
  if (step.kernel != nullptr) {
    description.name = step.kernel->name;
    description.bytes = bytes_moved(*step.kernel, program_);
    nodes = step.kernel->nodes;
  } else {
    description.name = step.call->node->target().name();
    description.bytes = bytes_moved(*step.call, program_);
    nodes = {step.call->node};
  }
  for (const graph::Node* node : nodes) {
    if (node->meta.stack.empty()) continue;
    const graph::StackFrame& frame = node->meta.stack.frames().back();
    std::string line = frame.file + ":" + std::to_string(frame.line);
    if (std::ranges::find(description.lines, line) == description.lines.end()) {
      description.lines.push_back(std::move(line));
    }
  }
}

// One frame waits for the next call. Calls at the same time, and calls inside calls, make their
// own.
std::unique_ptr<ProgramFrame> CompiledProgram::take_frame() const {
  std::unique_ptr<ProgramFrame> frame(idle_frame_.exchange(nullptr, std::memory_order_acquire));
  return frame != nullptr ? std::move(frame) : std::make_unique<ProgramFrame>(*this);
}

void CompiledProgram::keep_frame(std::unique_ptr<ProgramFrame> frame) const {
  const std::unique_ptr<ProgramFrame> older(
      idle_frame_.exchange(frame.release(), std::memory_order_acq_rel));
}

const aten::GraphRunner& CompiledProgram::eager() const {
  std::call_once(eager_made_, [&] {
    eager_ = std::make_unique<const aten::GraphRunner>(*program_.original, source_);
  });
  return *eager_;
}

void CompiledProgram::raise_as_eager(std::span<c10::IValue> inputs, const Kernel& kernel) const {
  c10::SmallVector<c10::IValue, 8> outputs;
  eager().call(inputs, outputs);
  throw InternalError("a check of the kernel '" + kernel.name +
                      "' failed, but the operators it was made of do not raise");
}

void CompiledProgram::call(std::span<c10::IValue> inputs, Outputs& outputs) const {
  internal_check(inputs.size() == inputs_.size(), "a compiled program is given all its inputs");
  if (!ProgramRun::can_take(*this, inputs)) {
    eager().call(inputs, outputs);
    return;
  }
  c10::SmallVector<c10::IValue, 8> copies;
  if (has_checks_) copies.append(inputs.begin(), inputs.end());
  auto frame = take_frame();
  const ArenaBlock arena(static_cast<std::size_t>(plan_.arena_bytes));
  frame->use_arena(*this, arena.data());
  ProgramRun run(*this, *frame);
  run.take_inputs(inputs);
  if (const Kernel* failed = run.run_steps()) raise_as_eager(copies, *failed);
  run.give_outputs(outputs);
  keep_frame(std::move(frame));  // not after an exception: its values would live on
}

}  // namespace assay::kernels
