#include "aten/runner.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "assay/error.h"
#include "aten/call.h"
#include "aten/convert.h"
#include "aten/current_node.h"
#include "aten/failure.h"
#include "aten/functorch_levels.h"
#include "aten/operators.h"
#include "aten/plan.h"
#include "aten/trace_keys.h"
#include "graph/print.h"

namespace assay::aten {

namespace {

std::string describe_failure(const graph::Node& node, const std::string& message) {
  std::string text = "node '" + node.name() + "' failed: " + message + "\n  in " + node.name() +
                     " = " + graph::print_call(node);
  for (const graph::StackFrame& frame : node.meta.stack) {
    text += "\n  File \"" + frame.file + "\", line " + std::to_string(frame.line) + ", in " +
            frame.function + "\n    " + frame.text;
  }
  return text;
}

// The dispatcher lists every device there is. What a user needs is that there is no CPU kernel.
std::string message_of(const c10::Error& error) {
  std::string message = error.what_without_backtrace();
  constexpr std::string_view kNoKernel = "Could not run '";
  constexpr std::string_view kOnCpu = "' with arguments from the 'CPU' backend";
  const auto end = message.find(kOnCpu);
  if (message.starts_with(kNoKernel) && end != std::string::npos) {
    message.resize(end + kOnCpu.size());
    message += ": it has no kernel for CPUs";
  }
  return message;
}

void empty(Value& slot) {
  if (slot.is_leaf()) {
    slot.leaf = c10::IValue();
  } else {
    slot = Value();
  }
}

// One run of a plan in a frame.
class Run {
 public:
  Run(const RunPlan& plan, RunFrame& frame, const NodeObserver& observer)
      : plan_(plan), observer_(observer), slots_(frame.slots), stack_(frame.stack) {}

  void call(std::span<c10::IValue> inputs, Outputs& outputs) {
    take_inputs(inputs, [](c10::IValue& input) { return unpack_value(std::move(input)); });
    run_steps();
    for (const OutputLeaf& leaf : plan_.output_leaves) outputs.push_back(take_output(leaf));
    empty_slots();
  }

  Value run(std::vector<Value> inputs) {
    take_inputs(std::span(inputs), [](Value& input) { return std::move(input); });
    run_steps();
    Value result = instantiate(plan_.output, slots_);
    empty_slots();
    return result;
  }

 private:
  c10::IValue take_output(const OutputLeaf& leaf) {
    if (leaf.slot == kNoSlot) return leaf.constant;
    Value& value = slots_[leaf.slot];
    return leaf.is_last_mention ? pack_value(std::move(value)) : pack_value(value);
  }

  // The frame is kept for the next run, but nothing that was computed in this one.
  void empty_slots() {
    for (Slot slot : plan_.kept_slots) empty(slots_[slot]);
  }

  void run_steps() {
    const CurrentNodeScope keep;
    const FunctorchLevelsScope levels;
    for (const Step& step : plan_.steps) {
      current_node = step.node;
      try {
        execute(step);
      } catch (const OperatorError&) {
        throw;
      } catch (const InternalError&) {
        throw;
      } catch (const TraceError& error) {
        throw TraceError(located_error(plan_, *step.node, error).detail());
      } catch (const UserError& error) {
        throw located_error(plan_, *step.node, error);
      } catch (const c10::Error& error) {
        throw OperatorError(*step.node, message_of(error), python_class_of(error));
      } catch (const std::exception& error) {
        throw OperatorError(*step.node, error.what());
      }
      for (Slot slot : step.released) empty(slots_[slot]);
    }
  }

  template <typename Input, typename ToValue>
  void take_inputs(std::span<Input> inputs, const ToValue& to_value) {
    const std::size_t wanted = plan_.placeholders.size();
    if (inputs.size() > wanted) {
      throw UserError("the graph takes " + std::to_string(wanted) + " inputs, " +
                      std::to_string(inputs.size()) + " given");
    }
    for (std::size_t i = 0; i < wanted; ++i) {
      Value& slot = slots_[plan_.input_slots[i]];
      if (i < inputs.size()) {
        slot = to_value(inputs[i]);
      } else if (!plan_.placeholders[i]->args().empty()) {
        slot = constant_value(plan_.placeholders[i]->args()[0]);
      } else {
        throw UserError("the input '" + plan_.placeholders[i]->name() + "' is missing");
      }
      if (observer_) observer_(*plan_.placeholders[i], slot);
    }
    if (observer_) {
      for (const auto& [node, value] : plan_.bound) observer_(*node, value);
    }
  }

  void execute(const Step& step) {
    switch (step.kind) {
      case Step::Kind::operator_call:
        call_operator(step);
        return;
      case Step::Kind::python_call:
        call_python(step);
        return;
      case Step::Kind::item:
        finish(step, take_item(step));
        return;
      case Step::Kind::attribute:
        finish(step, step.attribute);
        return;
      case Step::Kind::subgraph_call:
        finish(step, step.subgraph->run(arguments(step).positional, observer_));
        return;
    }
  }

  void finish(const Step& step, Value value) {
    if (observer_) observer_(*step.node, value);
    slots_[step.result] = std::move(value);
  }

  void push_operand(const c10::OperatorHandle& op, const OperatorArgument& operand) {
    if (operand.kind == OperatorArgument::Kind::constant) {
      stack_.push_back(operand.constant);
      return;
    }
    if (operand.kind == OperatorArgument::Kind::tensor_slot) {
      Value& value = slots_[operand.slot];
      if (value.is_tensor()) {
        if (operand.is_last_use) {
          stack_.push_back(std::move(value.leaf));
        } else {
          stack_.push_back(value.leaf);
        }
        return;
      }
    }
    int cost = 0;
    const Value value = instantiate(operand.value, slots_);
    if (operand.is_last_use) empty(slots_[operand.slot]);
    auto converted = convert(value, op.schema(), operand.position, cost);
    if (!converted) {
      throw UserError("argument '" + operand.schema->name() + "' should be " +
                      operand.schema->real_type()->annotation_str() + ", found " +
                      type_name(value));
    }
    stack_.push_back(std::move(*converted));
  }

  void call_boxed(const c10::OperatorHandle& op, const std::vector<OperatorArgument>& operands) {
    stack_.clear();
    for (const OperatorArgument& operand : operands) push_operand(op, operand);
    op.callBoxed(stack_);
  }

  // Takes what an operator left on the stack as the step's result.
  void finish_stack(const Step& step) {
    if (stack_.size() != 1) {
      finish(step, results_to_value(stack_));
      return;
    }
    if (observer_) observer_(*step.node, Value(stack_[0]));
    Value& slot = slots_[step.result];
    slot.kind = Value::Kind::leaf;
    slot.leaf = std::move(stack_[0]);
  }

  // The tensor that an operand stands for; nullptr if it is something else.
  const at::Tensor* tensor_operand(const OperatorArgument& operand) const {
    const c10::IValue* value = nullptr;
    if (operand.kind == OperatorArgument::Kind::constant) {
      value = &operand.constant;
    } else if (operand.kind == OperatorArgument::Kind::tensor_slot &&
               slots_[operand.slot].is_leaf()) {
      value = &slots_[operand.slot].leaf;
    }
    return value != nullptr && value->isTensor() ? &value->toTensor() : nullptr;
  }

  // False if the operands are not what the operator's C++ signature takes.
  bool call_unboxed(const Step& step) {
    const auto& operands = step.operands;
    const at::Tensor* first = tensor_operand(operands[0]);
    if (first == nullptr) return false;
    at::Tensor result;
    if (const auto* unary = std::get_if<UnaryOperator>(&step.unboxed)) {
      result = unary->call(*first);
    } else {
      const at::Tensor* second = tensor_operand(operands[1]);
      if (second == nullptr) return false;
      // Not while somebody records: in a graph the number stays what it was.
      if (step.float_constant.defined() && first->scalar_type() == at::kFloat &&
          !is_traced_by_thread()) {
        second = &step.float_constant;
      }
      if (const auto* binary = std::get_if<BinaryOperator>(&step.unboxed)) {
        result = binary->call(*first, *second);
      } else {
        if (operands[2].kind != OperatorArgument::Kind::constant) return false;
        result = std::get<ScaledBinaryOperator>(step.unboxed)
                     .call(*first, *second, operands[2].constant.toScalar());
      }
    }
    for (const OperatorArgument& operand : operands) {
      if (operand.is_last_use) empty(slots_[operand.slot]);
    }
    if (observer_) observer_(*step.node, Value(result));
    slots_[step.result].leaf = std::move(result);
    return true;
  }

  void call_operator(const Step& step) {
    if (!std::holds_alternative<std::monostate>(step.unboxed) && call_unboxed(step)) return;
    call_boxed(*step.op, step.operands);
    if (step.item_results.empty()) {
      finish_stack(step);
      return;
    }
    if (observer_) observe_items(step);
    for (std::size_t i = 0; i < stack_.size(); ++i) {
      if (step.item_results[i] != kNoSlot) slots_[step.item_results[i]] = std::move(stack_[i]);
    }
  }

  // The items' nodes have no step of their own, but an observer sees them all the same.
  void observe_items(const Step& step) const {
    observer_(*step.node, results_to_value(stack_));
    const auto count = static_cast<std::int64_t>(stack_.size());
    for (const graph::Node* user : step.node->users()) {
      const std::int64_t index = *user->args()[1].get_if<std::int64_t>();
      const auto at = static_cast<std::size_t>(index < 0 ? index + count : index);
      observer_(*user, Value(stack_[at]));
    }
  }

  Arguments arguments(const Step& step) const {
    Arguments made;
    made.positional.reserve(step.args.size());
    for (const Template& value : step.args) made.positional.push_back(instantiate(value, slots_));
    for (const auto& [name, value] : step.kwargs) {
      made.keywords.push_back({name, instantiate(value, slots_)});
    }
    return made;
  }

  void call_python(const Step& step) {
    if (const ChosenOverload* chosen = step.overload.get(); chosen != nullptr && fits(*chosen)) {
      call_boxed(chosen->op, chosen->operands);
      finish_stack(step);
      return;
    }
    const graph::Target& target = step.node->target();
    if (is_higher_order(target)) {
      finish(step, run_higher_order(target, arguments(step), plan_));
    } else if (step.resolution.function != nullptr) {
      finish(step, call_function(*step.resolution.function, arguments(step)));
    } else {
      Match match = match_overload(step.resolution.overloads, arguments(step),
                                   step.resolution.dialect, target.name());
      // An `out=None` is dropped before matching, which would shift the remembered positions.
      const bool has_out =
          std::ranges::any_of(step.kwargs, [](const auto& kwarg) { return kwarg.first == "out"; });
      if (!has_out) {
        auto chosen = remember_overload(step, match, slots_);
        if (chosen != nullptr) step.overload.offer(std::move(chosen));
      }
      finish(step, aten::call(std::move(match)));
    }
  }

  // A call that cannot be made is an error in the file; one that raises is the program's failure.
  static Value call_function(const TorchFunction& function, Arguments arguments) {
    const BoundArguments bound(function.name, function.parameters, std::move(arguments));
    try {
      return function.run(bound);
    } catch (const NeedsPythonError&) {
      throw;
    } catch (const TraceError&) {
      throw;
    } catch (const UserError& error) {
      throw std::runtime_error(error.detail().message);
    }
  }

  bool fits(const ChosenOverload& chosen) const {
    return std::ranges::all_of(chosen.kinds, [this](const auto& expected) {
      return kind_of(slots_[expected.first]) == expected.second;
    });
  }

  Value take_item(const Step& step) const {
    if (step.args[0].slot == kNoSlot) {
      return call_function(*step.resolution.function, arguments(step));
    }
    const Value& container = slots_[step.args[0].slot];
    if (container.is_sequence()) return container.items[item_index(step, container.items.size())];
    if (container.is_leaf() && container.leaf.isTensorList()) {
      const auto list = container.leaf.toTensorList();
      return c10::IValue(list.get(item_index(step, list.size())));
    }
    return call_function(*step.resolution.function, arguments(step));
  }

  static std::size_t item_index(const Step& step, std::size_t size) {
    const auto count = static_cast<std::int64_t>(size);
    if (step.index < -count || step.index >= count) {
      throw std::out_of_range("index " + std::to_string(step.index) + " is out of range for " +
                              std::to_string(count) + " values");
    }
    return static_cast<std::size_t>(step.index < 0 ? step.index + count : step.index);
  }

  const RunPlan& plan_;
  const NodeObserver& observer_;
  std::vector<Value>& slots_;
  std::vector<c10::IValue>& stack_;
};

class GraphRunnerGraph : public CompiledGraph {
 public:
  explicit GraphRunnerGraph(const CompileRequest& request)
      : graph_(request.graph),
        runner_(*graph_, request.context->source,
                std::span(request.inputs).last(request.bound_inputs)) {}

  void call(std::span<c10::IValue> inputs, Outputs& outputs) const override {
    runner_.call(inputs, outputs);
  }

 private:
  std::shared_ptr<const graph::Graph> graph_;
  GraphRunner runner_;
};

}  // namespace

OperatorError::OperatorError(const graph::Node& node, std::string message, std::string raised)
    : std::runtime_error(describe_failure(node, message)),
      node_name_(node.name()),
      stack_(node.meta.stack),
      target_(node.target().name()),
      provenance_(node.meta.provenance),
      call_(graph::print_call(node)),
      message_(std::move(message)),
      raised_(std::move(raised)) {}

GraphRunner::GraphRunner(const graph::Graph& graph, const graph::python::Source* source,
                         std::span<const c10::IValue> bound)
    : plan_(make_plan(graph, source, bound)) {}
GraphRunner::~GraphRunner() { delete idle_frame_.load(); }
GraphRunner::GraphRunner(GraphRunner&& other) noexcept
    : plan_(std::move(other.plan_)), idle_frame_(other.idle_frame_.exchange(nullptr)) {}

// One frame waits for the next run. Runs at the same time, and runs inside runs, make their own.
std::unique_ptr<RunFrame> GraphRunner::take_frame() const {
  std::unique_ptr<RunFrame> frame(idle_frame_.exchange(nullptr, std::memory_order_acquire));
  return frame != nullptr ? std::move(frame) : std::make_unique<RunFrame>(*plan_);
}

void GraphRunner::keep_frame(std::unique_ptr<RunFrame> frame) const {
  const std::unique_ptr<RunFrame> older(
      idle_frame_.exchange(frame.release(), std::memory_order_acq_rel));
}

void GraphRunner::call(std::span<c10::IValue> inputs, Outputs& outputs,
                       const NodeObserver& observer) const {
  auto frame = take_frame();
  Run(*plan_, *frame, observer).call(inputs, outputs);
  keep_frame(std::move(frame));  // not after an exception: its values would live on
}

Value GraphRunner::run(std::vector<Value> inputs, const NodeObserver& observer) const {
  auto frame = take_frame();
  Value result = Run(*plan_, *frame, observer).run(std::move(inputs));
  keep_frame(std::move(frame));
  return result;
}

std::shared_ptr<const CompiledGraph> run_with_aten(const CompileRequest& request) {
  return std::make_shared<const GraphRunnerGraph>(request);
}

Value instantiate(const Template& value, const std::vector<Value>& slots) {
  if (value.slot != kNoSlot) return slots[value.slot];
  if (!value.is_container) return value.constant;
  Value made = value.constant;
  made.items.reserve(value.items.size());
  for (const Template& item : value.items) made.items.push_back(instantiate(item, slots));
  return made;
}

graph::ValueMeta describe(const Value& value) {
  if (value.is_tensor() && value.leaf.toTensor().defined()) {
    const at::Tensor& tensor = value.leaf.toTensor();
    graph::TensorMeta meta;
    meta.dtype = tensor.scalar_type();
    meta.device = tensor.device();
    meta.requires_grad = tensor.requires_grad();
    for (std::int64_t size : tensor.sizes()) meta.sizes.emplace_back(size);
    if (tensor.layout() == c10::kStrided) {
      for (std::int64_t stride : tensor.strides()) meta.strides.emplace_back(stride);
      meta.storage_offset = tensor.storage_offset();
    } else {
      meta.strides = graph::contiguous_strides(meta.sizes);
    }
    return {std::move(meta)};
  }
  if (value.is_int()) return {graph::SizeExpr(value.leaf.toInt())};
  if (value.is_sequence() || (value.is_leaf() && value.leaf.isTensorList())) {
    std::vector<graph::ValueMeta> items;
    for (const Value& item : unpack(value)) items.push_back(describe(item));
    return {std::move(items)};
  }
  return {};
}

void propagate_metadata(graph::Graph& graph, std::vector<Value> inputs,
                        const graph::python::Source* source) {
  const GraphRunner runner(graph, source);
  runner.run(std::move(inputs), [&](const graph::Node& node, const Value& value) {
    if (graph::Node* found = graph.find(node.name()); found == &node) {
      found->meta.value = describe(value);
    }
  });
}

}  // namespace assay::aten
