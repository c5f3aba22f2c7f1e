#include "aten/record_calls.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "assay/error.h"
#include "aten/autocast_regions.h"
#include "aten/call.h"
#include "aten/input_copies.h"
#include "aten/operator_record.h"
#include "aten/operators.h"
#include "aten/record_arguments.h"
#include "aten/record_calls_checks.h"
#include "aten/rng_state.h"
#include "aten/runner.h"
#include "aten/supported.h"
#include "aten/trace_keys.h"
#include "aten/value_reads.h"
#include "graph/python_names.h"
#include "observe/observe.h"

namespace assay::aten {

namespace {

using at::Tensor;
using graph::Argument;
using graph::Node;
using Stack = std::vector<c10::IValue>;

thread_local int captures_on_this_thread = 0;

struct RecordingScope {
  RecordingScope() { ++captures_on_this_thread; }
  ~RecordingScope() { --captures_on_this_thread; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;
};

class FunctionCapture {
 public:
  explicit FunctionCapture(const RecordCallsOptions& options)
      : options_(options),
        captured_{std::make_unique<graph::Graph>(graph::python_identifier(options.name)), {}},
        autocast_(*captured_.graph) {}

  RecordedCalls run(const Function& function, const std::vector<Value>& inputs) {
    const RestoreGeneratorScope keep_generator;
    const std::uint64_t seed = at::detail::getDefaultCPUGenerator().current_seed();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].is_tensor()) continue;
      check_supported(inputs[i].leaf.toTensor(), "input " + std::to_string(i));
    }
    const std::vector<Value> copies = copy_inputs(inputs);
    add_inputs(copies);
    recorded_grad_mode_ = c10::GradMode::is_enabled();
    const bool grad_mode = recorded_grad_mode_;
    bool leaves_grad_mode = grad_mode;
    Value result;
    {
      const Restore restore(*this);
      const RefuseValueReadsScope refuse([this] { return describe_stack(); });
      const CallListener listener = [this](const c10::OperatorHandle& op, Stack& stack,
                                           const std::function<void()>& call) {
        try {
          record(op, stack, call);
        } catch (const TraceError& error) {
          refused_ = error;
          throw;
        }
      };
      const RecordingScope scope;
      const c10::AutoGradMode keep_mode(grad_mode);  // also if the program throws
      const TraceAboveAutogradScope traced(listener);
      try {
        result = function(copies);
      } catch (...) {
        // A program (or the Python interpreter) may have made another error out of ours.
        if (refuse.error()) throw *refuse.error();
        if (refused_) throw *refused_;
        throw;
      }
      leaves_grad_mode = c10::GradMode::is_enabled();
      // The program may have caught ours and gone on.
      if (refuse.error()) throw *refuse.error();
      if (refused_) throw *refused_;
      refuse_backward();
    }
    if (at::detail::getDefaultCPUGenerator().current_seed() != seed) {
      throw TraceError("the program seeds the random generator",
                       "seed it outside of the compiled function");
    }
    if (leaves_grad_mode != grad_mode) {
      throw TraceError("the program changes grad mode and does not restore it",
                       "use a guard (torch::NoGradGuard) inside the program");
    }
    if (autocast_.is_inside()) {
      throw TraceError("the program changes autocast and does not restore it",
                       "exit autocast regions before returning");
    }
    refuse_custom_functions(with_changed(result, copies), histories_);
    record_modes();
    autocast_.leave();
    captured_.graph->set_output(to_argument(result));
    result = Value();
    copy_own_constants();
    remove_unused_memory();
    return std::move(captured_);
  }

 private:
  // Puts back what the trial run wrote to tensors that are not its own.
  class Restore {
   public:
    explicit Restore(FunctionCapture& capture) : capture_(capture) {}
    ~Restore() {
      const c10::AutoGradMode no_grad(false);
      const NotTracedScope guard;
      for (auto& [tensor, before] : capture_.changed_) tensor.variable_data().copy_(before);
      for (const Gradient& gradient : capture_.gradients_) {
        gradient.leaf.mutable_grad() = gradient.before;
      }
    }
    Restore(const Restore&) = delete;
    Restore& operator=(const Restore&) = delete;

   private:
    FunctionCapture& capture_;
  };

  struct Entry {
    Tensor tensor;  // kept alive: addresses are reused
    Node* node = nullptr;
    bool requires_grad = false;
  };

  // What a leaf's `.grad` was before the program ran.
  struct Gradient {
    Tensor leaf;
    Tensor before;
    std::int64_t version = 0;
  };

  void add_inputs(const std::vector<Value>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string name =
          i < options_.input_names.size() ? options_.input_names[i] : "input_" + std::to_string(i);
      Node& node = captured_.graph->placeholder(name);
      node.meta.value = describe(inputs[i]);
      if (!inputs[i].is_tensor() || !inputs[i].leaf.toTensor().defined()) continue;
      bind(inputs[i].leaf.toTensor(), node);
      watch_gradient(inputs[i].leaf.toTensor());
    }
  }

  void bind(const Tensor& tensor, Node& node) {
    if (node.op() == graph::Op::placeholder) histories_.push_back(tensor.grad_fn());
    entries_.try_emplace(tensor.unsafeGetTensorImpl(),
                         Entry{tensor, &node, tensor.requires_grad()});
    if (tensor.has_storage()) {
      by_storage_[tensor.storage().unsafeGetStorageImpl()].push_back(tensor);
    }
  }

  void watch_gradient(const Tensor& tensor) {
    if (!tensor.requires_grad() || !tensor.is_leaf()) return;
    const Tensor& before = tensor.grad();
    gradients_.push_back({tensor, before, before.defined() ? before._version() : 0});
  }

  // ---- tensors ----

  Node& node_of(const Tensor& tensor) {
    if (tensor.has_storage()) check_initialised(tensor.storage().unsafeGetStorageImpl());
    const auto found = entries_.find(tensor.unsafeGetTensorImpl());
    if (found != entries_.end()) {
      if (tensor.requires_grad() && tensor.is_leaf() && !found->second.requires_grad) {
        throw TraceError("the program calls requires_grad_() on a tensor" + describe_stack(),
                         "call it outside of the compiled function");
      }
      return *found->second.node;
    }
    if (tensor.has_storage()) {
      const auto shared = by_storage_.find(tensor.storage().unsafeGetStorageImpl());
      if (shared != by_storage_.end()) return add_alias(tensor, shared->second);
    }
    return add_capture(tensor);
  }

  // Memory that was filled without an operator makes its tensor a constant of the program.
  void check_initialised(const c10::StorageImpl* storage) {
    const auto found = uninitialised_.find(storage);
    if (found == uninitialised_.end()) return;
    const Tensor tensor = found->second;
    uninitialised_.erase(found);
    if (has_pattern(tensor)) return;
    for (const Tensor& alias : by_storage_[storage]) {
      entries_.erase(alias.unsafeGetTensorImpl());
      replaced_.push_back(alias);  // kept alive: addresses are reused
    }
    by_storage_.erase(storage);
    filled_inside_.insert(storage);
  }

  // `x.data`, and what autograd keeps for backward, are the same values without history.
  Node& add_alias(const Tensor& tensor, const std::vector<Tensor>& known) {
    for (const Tensor& other : known) {
      if (other.sizes() != tensor.sizes() || other.strides() != tensor.strides() ||
          other.storage_offset() != tensor.storage_offset() || other.dtype() != tensor.dtype()) {
        continue;
      }
      Node& base = *entries_.at(other.unsafeGetTensorImpl()).node;
      if (!other.requires_grad() && !tensor.requires_grad()) {
        bind(tensor, base);  // there is no history to be without
        return base;
      }
      Node& node = captured_.graph->call_function("torch.ops.aten.detach.default", {&base});
      node.meta.value = describe(Value(c10::IValue(tensor)));
      bind(tensor, node);
      return node;
    }
    throw TraceError("the program created a tensor on the memory of another without an operator" +
                         describe_stack(),
                     "use view operators");
  }

  Node& add_capture(const Tensor& tensor) {
    check_supported(tensor, "a tensor that the program uses but does not take as an input");
    std::optional<graph::Graph::InsertBefore> before;
    if (Node* call = first_call()) before.emplace(*captured_.graph, *call);
    Node& node =
        captured_.graph->placeholder("captured_" + std::to_string(captured_.tensors.size()));
    node.meta.value = describe(Value(c10::IValue(tensor)));
    index_of_capture_[&node] = captured_.tensors.size();
    captured_.tensors.push_back(tensor);
    captured_storages_.insert(tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl()
                                                   : nullptr);
    bind(tensor, node);
    watch_gradient(tensor);
    return node;
  }

  void keep_before_write(const OperatorRecord& record, const Stack& stack) {
    for (std::size_t i : record.writes) {
      if (stack[i].isTensor()) keep_before_write(stack[i].toTensor());
      if (stack[i].isTensorList()) {
        for (const Tensor& tensor : stack[i].toTensorVector()) keep_before_write(tensor);
      }
    }
  }

  void keep_before_write(const Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage() ||
        !captured_storages_.contains(tensor.storage().unsafeGetStorageImpl())) {
      return;
    }
    for (const Tensor& whole : captured_.tensors) {
      if (!whole.storage().is_alias_of(tensor.storage())) continue;
      const bool is_kept = std::ranges::any_of(
          changed_, [&](const auto& entry) { return entry.first.is_same(whole); });
      if (is_kept) continue;
      const c10::AutoGradMode no_grad(false);
      const NotTracedScope guard;
      changed_.emplace_back(whole, whole.detach().clone());
    }
  }

  // ---- calls ----

  std::string describe_stack() const {
    if (options_.where) return options_.where();
    if (!options_.stack) return {};
    std::string text;
    for (const graph::StackFrame& frame : options_.stack()) {
      text += "\n  File \"" + frame.file + "\", line " + std::to_string(frame.line) + ", in " +
              frame.function;
      if (!frame.text.empty()) text += "\n    " + frame.text;
    }
    return text;
  }

  void record_modes() {
    record_grad_mode();
    autocast_.record();
  }

  void record_grad_mode() {
    const bool mode = c10::GradMode::is_enabled();
    if (mode == recorded_grad_mode_) return;
    captured_.graph->call_function("torch._C._set_grad_enabled", {mode});
    recorded_grad_mode_ = mode;
  }

  void record(const c10::OperatorHandle& op, Stack& stack, const std::function<void()>& call) {
    const c10::FunctionSchema& schema = op.schema();
    const OperatorRecord& facts = operator_record(op);
    if (!schema.returns().empty() && !facts.returns_tensors) {
      call();
      return;
    }
    refuse_call(op, stack);
    record_modes();
    RecordedArguments arguments =
        record_arguments(schema, stack, [this](const Tensor& tensor) -> Argument {
          if (!entries_.contains(tensor.unsafeGetTensorImpl())) {
            if (auto number = wrapped_number(tensor)) return *number;
          }
          return &node_of(tensor);
        });
    keep_before_write(facts, stack);
    call();
    Node& node = captured_.graph->call_function(python_name(op), std::move(arguments.args),
                                                std::move(arguments.kwargs));
    node.meta.value = describe(results_to_value(stack));
    if (options_.stack) node.meta.stack = stacks_.intern(options_.stack());
    if (options_.listener) options_.listener(node);
    refuse_results(op, stack);
    bind_results(node, stack);
    if (facts.is_uninitialized && stack.size() == 1 && stack[0].isTensor()) {
      const Tensor& tensor = stack[0].toTensor();
      write_pattern(tensor);
      uninitialised_.emplace(tensor.storage().unsafeGetStorageImpl(), tensor);
    }
  }

  static void refuse_call(const c10::OperatorHandle& op, const Stack& stack) {
    const std::string& name = op.operator_name().name;
    if (name == "aten::_backward" || name == "aten::backward") throw backward_inside();
    if (name == "aten::detach_" && stack[0].isTensor() && stack[0].toTensor().requires_grad()) {
      throw TraceError("the program calls detach_()", "use detach(), which returns a new tensor");
    }
    RefuseValueReadsScope::check(op, stack);
  }

  static void refuse_results(const c10::OperatorHandle& op, const Stack& results) {
    for (const c10::IValue& result : results) {
      if (!result.isTensor() || !result.toTensor().defined()) continue;
      const Tensor& tensor = result.toTensor();
      if (tensor.layout() == c10::kStrided && tensor.is_cpu() && !tensor.is_nested() &&
          !tensor.is_quantized()) {
        continue;
      }
      throw TraceError(python_name(op) + " returns a tensor that is not a dense CPU tensor",
                       "do this part outside of the compiled function");
    }
  }

  static TraceError backward_inside() {
    return TraceError(
        "the program calls backward(), which accumulates gradients outside of the "
        "graph",
        "return the loss and call backward() on it outside");
  }

  void bind_results(Node& node, const Stack& results) {
    if (results.size() == 1 && results[0].isTensor()) {
      if (results[0].toTensor().defined()) bind(results[0].toTensor(), node);
      return;
    }
    std::vector<Tensor> tensors;
    if (results.size() == 1 && results[0].isTensorList()) {
      tensors = results[0].toTensorVector();
    } else {
      for (const c10::IValue& result : results) {
        if (result.isTensorList()) {
          bind_list(node, tensors.size(), result.toTensorVector());
          tensors.emplace_back();
          continue;
        }
        tensors.push_back(result.isTensor() ? result.toTensor() : Tensor());
      }
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) bind_item(node, i, tensors[i]);
  }

  void bind_list(Node& node, std::size_t index, const std::vector<Tensor>& tensors) {
    Node& list = captured_.graph->call_function("operator.getitem",
                                                {&node, static_cast<std::int64_t>(index)});
    for (std::size_t i = 0; i < tensors.size(); ++i) bind_item(list, i, tensors[i]);
  }

  void bind_item(Node& node, std::size_t index, const Tensor& tensor) {
    if (!tensor.defined() || entries_.contains(tensor.unsafeGetTensorImpl())) return;
    Node& item = captured_.graph->call_function("operator.getitem",
                                                {&node, static_cast<std::int64_t>(index)});
    item.meta.value = describe(Value(c10::IValue(tensor)));
    if (options_.listener) options_.listener(item);
    bind(tensor, item);
  }

  // ---- the end ----

  // Where gradients may leave the program: its results, and what it has changed.
  Value with_changed(const Value& result, const std::vector<Value>& inputs) const {
    std::vector<Value> all = inputs;
    all.push_back(result);
    for (const Tensor& tensor : captured_.tensors) all.emplace_back(c10::IValue(tensor));
    return Value::sequence(Value::Kind::tuple, std::move(all));
  }

  // A gradient is replaced, or added to in place.
  void refuse_backward() const {
    for (const Gradient& gradient : gradients_) {
      const Tensor& now = gradient.leaf.grad();
      const bool is_same =
          now.is_same(gradient.before) && (!now.defined() || now._version() == gradient.version);
      if (!is_same) throw backward_inside();
    }
  }

  bool is_made_inside(const Tensor& tensor) const {
    if (tensor.has_storage() && filled_inside_.contains(tensor.storage().unsafeGetStorageImpl())) {
      return true;
    }
    if (tensor.has_storage() && tensor.storage().use_count() > 1) return false;  // e.g. `p.data`
    return options_.is_held_elsewhere ? !options_.is_held_elsewhere(tensor)
                                      : tensor.use_count() == 1;
  }

  // A tensor that nobody but this object holds was made by the program without an operator. The
  // program makes a new one in each call, so the graph copies it.
  void copy_own_constants() {
    entries_.clear();
    by_storage_.clear();
    replaced_.clear();
    changed_.clear();
    gradients_.clear();
    for (Node* placeholder : captured_.graph->placeholders()) {
      const auto index = index_of_capture_.find(placeholder);
      if (index == index_of_capture_.end()) continue;
      if (!is_made_inside(captured_.tensors[index->second])) continue;
      Node* after = first_call();
      const graph::Graph::InsertBefore before(*captured_.graph, *after);
      Node& copy = captured_.graph->call_function("torch.ops.aten.clone.default", {});
      copy.meta.value = placeholder->meta.value;
      placeholder->replace_all_uses_with(copy);
      copy.set_arguments({placeholder});
    }
  }

  void remove_unused_memory() {
    auto& nodes = captured_.graph->nodes();
    for (auto position = nodes.begin(); position != nodes.end();) {
      Node& node = *position++;
      const bool is_unused = node.is_call() && node.users().empty();
      if (is_unused && operator_record(node).is_uninitialized) captured_.graph->erase(node);
    }
  }

  Node* first_call() {
    for (Node& node : captured_.graph->nodes()) {
      if (node.op() != graph::Op::placeholder) return &node;
    }
    return nullptr;
  }

  Argument to_argument(const Value& value) {
    if (value.is_tensor()) {
      if (!value.leaf.toTensor().defined()) {
        throw TraceError("the program returns an undefined tensor",
                         "return only tensors that were computed");
      }
      return &node_of(value.leaf.toTensor());
    }
    if (value.is_none()) return {};
    if (value.is_bool()) return value.leaf.toBool();
    if (value.is_int()) return value.leaf.toInt();
    if (value.is_float()) return value.leaf.toDouble();
    if (value.is_string()) return value.leaf.toStringRef();
    if (value.kind == Value::Kind::dict) {
      graph::Dict dict;
      dict.keys = value.keys;
      for (const Value& item : value.items) dict.items.push_back(to_argument(item));
      return dict;
    }
    std::vector<Argument> items;
    if (value.is_sequence() || (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple()))) {
      for (const Value& item : unpack(value)) items.push_back(to_argument(item));
      if (value.kind == Value::Kind::tuple) return graph::Tuple{std::move(items)};
      return graph::List{std::move(items)};
    }
    throw TraceError("the program returns a " + type_name(value) + ", which a graph cannot return",
                     "return tensors, numbers, and lists, tuples or dicts of them");
  }

  const RecordCallsOptions& options_;
  graph::StackTable stacks_;
  RecordedCalls captured_;
  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
  std::unordered_map<const c10::StorageImpl*, std::vector<Tensor>> by_storage_;
  std::unordered_set<const c10::StorageImpl*> captured_storages_;
  std::unordered_map<const c10::StorageImpl*, Tensor> uninitialised_;
  std::unordered_set<const c10::StorageImpl*> filled_inside_;
  std::unordered_map<const Node*, std::size_t> index_of_capture_;
  std::vector<Tensor> replaced_;
  std::vector<std::pair<Tensor, Tensor>> changed_;  // tensor, contents before
  std::vector<Gradient> gradients_;
  bool recorded_grad_mode_ = true;
  AutocastRegions autocast_;
  std::optional<TraceError> refused_;
  /// Of inputs and captured tensors before the program did anything to them.
  std::vector<c10::intrusive_ptr<torch::autograd::Node>> histories_;
};

}  // namespace

bool is_recording_calls() { return captures_on_this_thread != 0; }

RecordedCalls record_calls(const Function& function, const std::vector<Value>& inputs,
                           const RecordCallsOptions& options) {
  const observe::Phase phase("capture", observe::Component::dynamo);
  return FunctionCapture(options).run(function, inputs);
}

}  // namespace assay::aten
