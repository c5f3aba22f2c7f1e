// Calls of C code that become one call of Python in the graph (python_calls.h).
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "aten/operator_record.h"
#include "aten/runner.h"
#include "capture/python_calls.h"
#include "capture/raised.h"
#include "capture/recipe_builder.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// What can be given to every run as it is.
bool is_lasting(Recorder& recorder, PyObject* object) {
  if (is_scalar(object)) return true;
  if (!recorder.touch(object)) return false;
  return is_torch_enum(object) || is_device(object) ||
         (PyTuple_CheckExact(object) && recorder.has_only_values(object));
}

std::vector<PyObject*> results_of(PyObject* result) {
  if (!PyTuple_CheckExact(result)) return {result};
  return {&PyTuple_GET_ITEM(result, 0), &PyTuple_GET_ITEM(result, 0) + PyTuple_GET_SIZE(result)};
}

}  // namespace

void Recorder::take_back(std::size_t first_node) {
  std::unordered_set<const graph::Node*> gone;
  while (nodes_.size() > first_node) {
    gone.insert(nodes_.back());
    graph_->erase(*nodes_.back());
    nodes_.pop_back();
  }
  tracked_.forget(gone);
}

PyObject* Recorder::call_as_one(Activation& a, const Call& call, PyTypeObject* context) {
  const auto plainly = [&](const char* why) { return call_plainly(a, call, why); };
  // What has changed in the program changes after the graph has run, and the call is in the graph.
  if (!effects_.empty()) return plainly("a call of Python after a change of an older object");
  for (std::size_t i = 0; i < call.count; ++i) {
    if (!is_tensor(call.args[i])) use_sizes(call.args[i]);
  }
  PythonCall made_again = {Ref::borrow(call.callable), {}};
  graph::List tensors;
  for (std::size_t i = 0; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    if (is_tensor(argument)) {
      graph::Node* node = node_of(argument);
      if (node == nullptr || has_open_size(argument)) return plainly("a call with such a tensor");
      tensors.items.emplace_back(node);
      made_again.arguments.emplace_back();
    } else if (is_lasting(*this, argument)) {
      made_again.arguments.push_back(Ref::borrow(argument));
    } else {
      return plainly("a call of Python with an object that may change");
    }
  }
  const std::size_t first_node = nodes_.size();
  const SizeNumbers::Mark size_numbers = size_numbers_.mark();
  bool varies = false;
  for (std::size_t i = 0; i < call.count; ++i) varies = varies || has_varying_size(call.args[i]);
  const std::size_t regions = autocast_.size();
  const bool mode = std::exchange(grad_mode_, false);  // C code sets it for what it calls back
  creating_.push_back(context);
  ++calls_as_one_;
  PyObject* result = PyObject_Vectorcall(call.callable, call.args, call.positional(), call.names);
  if (!is_recording()) return result;  // a break inside
  --calls_as_one_;
  creating_.pop_back();
  grad_mode_ = mode;
  if (result == nullptr) {
    const Ref error = take_raised();
    if (stop(a, "a call of Python raised", false)) set_raised(error);
    return nullptr;
  }
  const auto end = [&](const char* why) -> PyObject* {
    if (!stop(a, why)) Py_CLEAR(result);
    return result;
  };
  const auto is_repeatable = [](const graph::Node* node) {
    return !writes_to_argument(*node) && !aten::operator_record(*node).is_random;
  };
  if (!effects_.empty() || autocast_.size() != regions ||
      !std::all_of(nodes_.begin() + static_cast<std::ptrdiff_t>(first_node), nodes_.end(),
                   is_repeatable)) {
    return end("a call of Python changes something");
  }
  size_numbers_.truncate(size_numbers);
  take_back(first_node);
  const std::vector<PyObject*> items = results_of(result);
  const auto is_new_tensor = [&](PyObject* item) {
    return Py_TYPE(item) == tensor_type() && tracked_.find(item) == nullptr;
  };
  if (!std::ranges::all_of(items, is_new_tensor)) {
    return end("a call of Python returns other objects than new tensors");
  }
  expected_operators_ = watch_.count();
  graph::Node& node = graph_->call_function(
      kPythonCall, {add_python_call(std::move(made_again)), graph::Argument(std::move(tensors))});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  std::vector<graph::ValueMeta> metas;
  for (PyObject* item : items) {
    graph::Node& taken =
        graph_->call_function("operator.getitem", {&node, static_cast<std::int64_t>(metas.size())});
    metas.push_back(aten::describe(aten::Value(c10::IValue(tensor_of(item)))));
    taken.meta.stack = node.meta.stack;
    taken.meta.value = metas.back();
    nodes_.push_back(&taken);
    Tracked& tracked = tracked_.add(item, Tracked::Kind::node);
    tracked.node = &taken;
    tracked.varying = varies ? ~std::uint64_t{0} : 0;
  }
  node.meta.value = {std::move(metas)};
  if (PyTuple_CheckExact(result) && tracked_.find(result) == nullptr) track_local(result);
  return result;
}

}  // namespace assay::capture
