#include "aten/recorder.h"

#include <ATen/ops/bernoulli.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "assay/error.h"
#include "aten/call.h"
#include "aten/current_node.h"
#include "aten/operator_record.h"
#include "aten/operators.h"
#include "aten/record_arguments.h"
#include "aten/runner.h"
#include "aten/trace_keys.h"
#include "aten/value_reads.h"

namespace assay::aten {

namespace {

using graph::Argument;
using graph::Node;

thread_local Recorder* active_recorder = nullptr;

// CompositeImplicit operators that reach the recorder are made of others, which it records instead.
bool is_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

void run_below(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Recorder::Stack& stack) {
  const NotTracedScope guard;
  op.redispatchBoxed(keys, &stack);
}

// Functionalization makes `bernoulli.p` of `bernoulli_`. But that one draws row by row, and this
// one in the order of memory. False if there is nothing to do.
bool draw_in_order_of_memory(const c10::OperatorHandle& op, Recorder::Stack& stack) {
  if (op.operator_name() != c10::OperatorName("aten::bernoulli", "p")) return false;
  if (current_node != nullptr && current_node->target().base_name() == "bernoulli") return false;
  const at::Tensor self = stack[0].toTensor();
  std::vector<std::int64_t> order(static_cast<std::size_t>(self.dim()));
  std::iota(order.begin(), order.end(), 0);
  // Dimensions of one element are anywhere.
  std::ranges::stable_sort(order, std::greater(), [&](std::int64_t dim) {
    return self.size(dim) > 1 ? self.stride(dim) : std::numeric_limits<std::int64_t>::max();
  });
  std::vector<std::int64_t> rows = order;
  std::erase_if(rows, [&](std::int64_t dim) { return self.size(dim) <= 1; });
  if (std::ranges::is_sorted(rows)) return false;
  std::vector<std::int64_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  const auto generator = stack[2].toOptional<at::Generator>();
  stack = {at::bernoulli(self.permute(order), stack[1].toDouble(), generator).permute(back)};
  return true;
}

}  // namespace

Recorder* Recorder::active() { return active_recorder; }

Recorder::ActiveScope::ActiveScope(Recorder& recorder) : saved_(active_recorder) {
  register_trace_keys();
  active_recorder = &recorder;
}

Recorder::ActiveScope::~ActiveScope() { active_recorder = saved_; }

Node& Recorder::add_input(std::string_view name, const at::Tensor& tensor) {
  Node* first_call = nullptr;
  for (Node& node : graph_.nodes()) {
    if (node.op() == graph::Op::placeholder) continue;
    first_call = &node;
    break;
  }
  std::optional<graph::Graph::InsertBefore> before;
  if (first_call != nullptr) before.emplace(graph_, *first_call);
  Node& node = graph_.placeholder(name);
  node.meta.value = describe(Value(c10::IValue(tensor)));
  entries_[impl(tensor)] = {tensor, tensor, &node};
  return node;
}

Node& Recorder::node_of(const at::Tensor& tensor) {
  auto found = entries_.find(impl(tensor));
  if (found != entries_.end()) return *found->second.node;
  Node& node = add_input("captured_" + std::to_string(captures_.size() + 1), tensor);
  captures_.push_back({tensor, &node});
  return node;
}

bool Recorder::is_changed(const at::Tensor& tensor) const {
  const auto found = entries_.find(impl(tensor));
  return found != entries_.end() && found->second.current.unsafeGetTensorImpl() != impl(tensor);
}

void Recorder::bind(const at::Tensor& tensor, Node& node) {
  // An operator may return one of its arguments (`_to_copy` never does, `contiguous` may).
  entries_.try_emplace(impl(tensor), Entry{tensor, tensor, &node});
}

void Recorder::replace_value(const at::Tensor& tensor, const at::Tensor& value, Node& node) {
  node_of(tensor);  // so that it has an entry
  const auto& storage = tensor.storage();
  for (const auto& [other, entry] : entries_) {
    if (other == impl(tensor) || !entry.tensor.has_storage()) continue;
    // Nobody but the recorder has it (a step of a decomposition), so nobody can read it any more.
    const std::size_t own = entry.current.is_same(entry.tensor) ? 2 : 1;
    if (entry.tensor.use_count() <= own) continue;
    if (entry.tensor.storage().is_alias_of(storage) && entry.tensor.numel() != 0) {
      throw TraceError(
          "the program mutates a tensor that was not passed as an input and that "
          "aliases another tensor of the program",
          "pass it as an input");
    }
  }
  Entry& entry = entries_.at(impl(tensor));
  entry.current = value;
  entry.node = &node;
  bind(value, node);
  for (CapturedTensor& capture : captures_) {
    if (capture.tensor.is_same(tensor)) capture.is_changed = true;
  }
}

void Recorder::use_current_values(Stack& stack) const {
  const auto current = [this](const at::Tensor& tensor) -> const at::Tensor* {
    const auto found = entries_.find(impl(tensor));
    if (found == entries_.end() || found->second.current.is_same(tensor)) return nullptr;
    return &found->second.current;
  };
  for (c10::IValue& value : stack) {
    if (value.isTensor() && value.toTensor().defined()) {
      if (const at::Tensor* changed = current(value.toTensor())) value = *changed;
    } else if (value.isTensorList()) {
      auto list = value.toTensorList();
      for (std::size_t i = 0; i < list.size(); ++i) {
        const at::Tensor& item = list.get(i);
        if (!item.defined()) continue;
        if (const at::Tensor* changed = current(item)) list.set(i, *changed);
      }
    }
  }
}

Node& Recorder::add_call(const c10::OperatorHandle& op, const Stack& arguments) {
  RecordedArguments recorded =
      record_arguments(op.schema(), arguments, [this](const at::Tensor& tensor) -> Argument {
        if (!knows(tensor)) {
          if (auto number = wrapped_number(tensor)) return *number;
        }
        return &node_of(tensor);
      });
  Node& node =
      graph_.call_function(python_name(op), std::move(recorded.args), std::move(recorded.kwargs));
  return node;
}

void Recorder::add_results(Node& call, const Stack& results) {
  for (const c10::IValue& result : results) {
    if (result.isTensor() && result.toTensor().defined() &&
        result.toTensor().layout() != c10::kStrided) {
      throw TraceError(call.target().name() + " returns a sparse tensor, which graphs cannot hold",
                       "use dense tensors, e.g. sparse=False in an embedding");
    }
  }
  call.meta.value = describe(results_to_value(results));
  if (listener_) listener_(call);
  const auto item = [&](Node& from, std::size_t index, const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    Node& node =
        graph_.call_function("operator.getitem", {&from, static_cast<std::int64_t>(index)});
    node.meta.value = describe(Value(c10::IValue(tensor)));
    if (listener_) listener_(node);
    bind(tensor, node);
  };
  if (results.size() == 1) {
    if (results[0].isTensor()) {
      if (results[0].toTensor().defined()) bind(results[0].toTensor(), call);
    } else if (results[0].isTensorList()) {
      std::size_t index = 0;
      for (const at::Tensor& tensor : results[0].toTensorVector()) item(call, index++, tensor);
    }
    return;
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].isTensor()) {
      item(call, i, results[i].toTensor());
    } else if (results[i].isTensorList()) {
      Node& list = graph_.call_function("operator.getitem", {&call, static_cast<std::int64_t>(i)});
      list.meta.value = describe(Value(results[i]));
      std::size_t index = 0;
      for (const at::Tensor& tensor : results[i].toTensorVector()) item(list, index++, tensor);
    }
  }
}

// Only tensors the program was not given are changed in place here (functionalization sees to the
// others). The change is not made: the functional operator computes the new value, which later
// calls read instead.
void Recorder::record_in_place(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                               Stack& stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = op.operator_name().name;
  const auto functional = c10::Dispatcher::singleton().findSchema(
      {name.substr(0, name.size() - 1), op.operator_name().overload_name});
  const bool is_simple = operator_record(op).is_in_place && functional && stack[0].isTensor() &&
                         functional->schema().arguments().size() == schema.arguments().size();
  if (!is_simple) {
    throw TraceError(python_name(op) + " mutates a tensor that was not passed as an input",
                     "pass it as an input");
  }
  const at::Tensor changed = stack[0].toTensor();
  Node& node = add_call(*functional, stack);
  use_current_values(stack);
  run_below(*functional, keys, stack);
  add_results(node, stack);
  replace_value(changed, stack[0].toTensor(), node);
  stack = {changed};
}

// What updates nothing has operators of its own, for which there may be a replacement.
bool Recorder::replace_batch_norm(Stack& stack, bool has_statistics) {
  if (!replacement_) return false;
  static const c10::OperatorHandle no_training = c10::Dispatcher::singleton().findSchemaOrThrow(
      "aten::_native_batch_norm_legit_no_training", "");
  static const c10::OperatorHandle no_statistics =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_native_batch_norm_legit", "no_stats");
  Stack other = stack;
  if (has_statistics) {
    other.erase(other.begin() + 5);  // training
  } else {
    other.erase(other.begin() + 3, other.begin() + 5);
  }
  if (!replacement_(has_statistics ? no_training : no_statistics, other)) return false;
  stack = std::move(other);
  return true;
}

// Operators that update running statistics without declaring it. The one that autograd calls has a
// functional form, which returns the new statistics.
void Recorder::record_statistics(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                                 Stack& stack) {
  const auto is_given = [&](std::size_t position) {
    return stack[position].isTensor() && stack[position].toTensor().defined();
  };
  const bool has_statistics = std::ranges::any_of(operator_record(op).writes, is_given);
  const bool is_batch_norm = op.operator_name() == c10::OperatorName("aten::native_batch_norm", "");
  if (!has_statistics || (is_batch_norm && !stack[5].toBool())) {
    if (is_batch_norm && replace_batch_norm(stack, has_statistics)) return;
    record_call(op, keys, stack);
    return;
  }
  if (!is_batch_norm || !is_given(3) || !is_given(4)) {
    throw TraceError(python_name(op) +
                         " updates running statistics in place, which is not supported for this "
                         "operator",
                     "use torch.nn.functional.batch_norm");
  }
  static const c10::OperatorHandle functional = c10::Dispatcher::singleton().findSchemaOrThrow(
      "aten::_native_batch_norm_legit_functional", "");
  const at::Tensor mean = stack[3].toTensor();
  const at::Tensor variance = stack[4].toTensor();
  if (!replacement_ || !replacement_(functional, stack)) {
    Node& node = add_call(functional, stack);
    use_current_values(stack);
    run_below(functional, keys, stack);
    add_results(node, stack);
  }
  const at::Tensor new_mean = stack[3].toTensor();
  const at::Tensor new_variance = stack[4].toTensor();
  replace_value(mean, new_mean, node_of(new_mean));
  replace_value(variance, new_variance, node_of(new_variance));
  stack.resize(3);
}

void Recorder::record_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack) {
  Node& node = add_call(op, stack);
  use_current_values(stack);
  try {
    run_below(op, keys, stack);
  } catch (...) {
    graph_.erase(node);
    throw;
  }
  add_results(node, stack);
}

void Recorder::record(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack) {
  if (replacement_ && replacement_(op, stack)) return;
  if (draw_in_order_of_memory(op, stack)) return;
  if (is_composite(op)) {
    op.redispatchBoxed(keys, &stack);
    return;
  }
  refuse_value_read(op, stack, where_);
  const OperatorRecord& record = operator_record(op);
  if (!op.schema().returns().empty() && !record.returns_tensors) {
    use_current_values(stack);  // a question about a tensor's properties; nothing to compute later
    run_below(op, keys, stack);
    return;
  }
  if (record.writes_undeclared) {
    record_statistics(op, keys, stack);
    return;
  }
  if (!record.writes.empty()) {
    record_in_place(op, keys, stack);
    return;
  }
  record_call(op, keys, stack);
}

}  // namespace assay::aten
