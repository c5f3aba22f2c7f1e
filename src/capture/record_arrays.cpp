// Arrays of NumPy: a call of NumPy is one call of Python in the graph, in which arrays are tensors
// on the same memory. So its results are NumPy's own.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aten/runner.h"
#include "capture/arrays.h"
#include "capture/constant_objects.h"
#include "capture/models.h"
#include "capture/python_calls.h"
#include "capture/raised.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// What an array says of itself follows from the guards of its tensor.
bool is_metadata_of_array(std::string_view name) {
  static constexpr std::array<std::string_view, 7> names = {"shape",    "dtype",  "ndim",   "size",
                                                            "itemsize", "nbytes", "strides"};
  return std::ranges::find(names, name) != names.end();
}

bool is_view_of_array(std::string_view name) {
  return name == "T" || name == "mT" || name == "real" || name == "imag";
}

bool names_output(const Call& call) {
  for (std::size_t i = call.positional(); i < call.count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - call.positional()));
    if (PyUnicode_CompareWithASCIIString(name, "out") == 0 && call.args[i] != Py_None) return true;
  }
  return false;
}

// What is in the arrays that a call is given: it may write to one of them.
std::vector<Ref> contents_of(const Call& call) {
  std::vector<Ref> contents;
  for (std::size_t i = 0; i < call.count; ++i) {
    if (is_array(call.args[i])) {
      contents.push_back(Ref::steal(PyObject_CallMethod(call.args[i], "tobytes", nullptr)));
    }
  }
  PyErr_Clear();
  return contents;
}

bool are_same(const std::vector<Ref>& before, const std::vector<Ref>& after) {
  return std::ranges::equal(before, after, [](const Ref& left, const Ref& right) {
    return left && right && PyObject_RichCompareBool(left.get(), right.get(), Py_EQ) == 1;
  });
}

// `a[a > 0]`: what it gives has as many items as are true.
bool takes_mask(const Call& call) {
  const auto is_mask = [](PyObject* object) {
    if (!is_array(object)) return false;
    const Ref dtype = Ref::steal(PyObject_GetAttrString(object, "dtype"));
    const Ref kind = Ref::steal(dtype ? PyObject_GetAttrString(dtype.get(), "kind") : nullptr);
    return kind && to_string(kind.get()) == "b";
  };
  if (!PyCFunction_Check(call.callable) || call.count != 2) return false;
  const char* name = reinterpret_cast<PyCFunctionObject*>(call.callable)->m_ml->ml_name;
  if (std::string_view(name) != "getitem") return false;
  PyObject* key = call.args[1];
  if (!PyTuple_CheckExact(key)) return is_mask(key);
  return std::any_of(&PyTuple_GET_ITEM(key, 0), &PyTuple_GET_ITEM(key, 0) + PyTuple_GET_SIZE(key),
                     is_mask);
}

bool holds_array(Recorder& recorder, PyObject* object, int depth = 0) {
  if (recorder.is_computed_array(object)) return true;
  if (depth > 3 || (!PyTuple_CheckExact(object) && !PyList_CheckExact(object))) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    if (holds_array(recorder, PySequence_Fast_GET_ITEM(object, i), depth + 1)) return true;
  }
  return false;
}

}  // namespace

bool Recorder::is_computed_array(PyObject* object) {
  if (is_array(object)) return true;
  if (!is_array_scalar(object)) return false;
  const Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr) return true;
  const bool has_known_value =
      tracked->kind == Tracked::Kind::constant ||
      (tracked->kind == Tracked::Kind::source && is_value_of_subclass(object));
  return !has_known_value;
}

bool Recorder::has_computed_array(const Call& call) {
  return std::any_of(call.args, call.args + call.count,
                     [&](PyObject* argument) { return holds_array(*this, argument); });
}

graph::Node* Recorder::array_node(PyObject* array) {
  if (!touch(array)) return nullptr;
  Tracked* tracked = tracked_.find(array);
  if (tracked->node != nullptr || tracked->source == nullptr) return tracked->node;
  const Ref tensor = tensor_of_array(array);
  if (!tensor) {
    PyErr_Clear();
    return nullptr;
  }
  const at::Tensor& value = tensor_of(tensor.get());
  Source* source = sources_.get(Access::array, tracked->source, nullptr);
  source->checks.tensor.emplace(value);
  graph::Node& placeholder = add_placeholder(*source);
  placeholder.meta.value = aten::describe(aten::Value(c10::IValue(value)));
  inputs_.push_back(
      {source, &placeholder, value, static_cast<std::uint32_t>(value._version()), false, true, {}});
  Tracked& tracked_tensor = tracked_.add(tensor.get(), Tracked::Kind::source);
  tracked_tensor.source = source;
  tracked_tensor.node = &placeholder;
  tracked_tensor.is_touched = true;
  tracked_.find(array)->node = &placeholder;
  expected_operators_ = watch_.count();  // those that made the tensor
  return &placeholder;
}

bool Recorder::describe_array(PyObject* object, PythonArgument& made, CallTensors& tensors) {
  if (!is_computed_array(object)) {  // a scalar of a known value
    made.object = Ref::borrow(object);
    return touch(object);
  }
  graph::Node* node = array_node(object);
  if (node == nullptr) return false;
  tensors.are_fixed = tensors.are_fixed && tracked_.find(object)->is_fixed;
  made.kind = PythonArgument::Kind::tensor;
  made.form = form_of(object);
  made.index = tensors.nodes.items.size();
  tensors.nodes.items.emplace_back(node);
  return true;
}

PyObject* Recorder::call_array_function(Activation& a, const Call& call) {
  const auto plainly = [&](const char* why) { return call_plainly(a, call, why); };
  if (names_output(call)) return plainly("an array is written to");
  if (takes_mask(call) && !allows_no_break()) {
    return plainly("the size of an array follows from values");
  }
  use_sizes(call, SizeUse::all);
  PythonCall made_again;
  made_again.is_of_arrays = true;
  CallTensors tensors;
  if (find(call.callable) == nullptr && is_identity_object(call.callable)) {
    is_constant(call.callable);
  }
  bool is_known = touch(call.callable);
  made_again.callable.object = Ref::borrow(call.callable);
  for (std::size_t i = 0; is_known && i < call.count; ++i) {
    is_known = describe_argument(call.args[i], made_again.arguments.emplace_back(), tensors);
  }
  if (!is_known) return plainly("a call of NumPy with an object that is not modelled");
  if (tensors.vary) {
    fix_all_sizes("NumPy");
    tensors.vary = false;
  }
  made_again.names = Ref::borrow(call.names);
  const std::vector<Ref> before = contents_of(call);
  PyObject* result = call_unseen(call);
  if (result == nullptr) {
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    if (!stop(a, "a call of NumPy raised", false)) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  const auto end = [&](const char* why) -> PyObject* {
    if (!stop(a, why)) Py_CLEAR(result);
    return result;
  };
  if (!are_same(before, contents_of(call))) return end("an array is changed in place");
  if (tensors.are_fixed && (is_array_scalar(result) || describes_arrays(result))) {
    is_constant(result);
    return result;
  }
  std::vector<PyObject*> items;
  if (!arrays_of_result(result, items) || items.empty()) {
    if (tensors.are_fixed) return made(a, result, "a call of NumPy");
    return end("the value of an array is read");
  }
  for (PyObject* item : items) {
    const bool is_plain = !is_tensor(item) || Py_TYPE(item) == tensor_type();
    const Ref tensor = is_tensor(item) ? Ref::borrow(item) : tensor_of_array(item);
    if (!tensor || !is_plain) {
      PyErr_Clear();
      return end("a call of NumPy gives an array that is not one of torch");
    }
  }
  has_array_calls_ = true;
  const bool is_another_name = items.size() == 1 && tracked_.find(items[0]) != nullptr;
  if (!is_another_name) {
    add_python_call_node(std::move(made_again), std::move(tensors), items);
  }
  expected_operators_ = watch_.count();
  return made(a, result, "a call of NumPy");
}

// Which of them share memory with what was changed is not known.
void Recorder::forget_fixed_arrays() {
  for (auto& [object, tracked] : tracked_) tracked.is_fixed = false;
}

PyObject* Recorder::change_array(Activation& a, const Call& call) {
  const auto plainly = [&](const char* why) { return call_plainly(a, call, why); };
  PyObject* const changed = call.args[0];
  use_sizes(call, SizeUse::all);
  PythonCall made_again;
  made_again.is_of_arrays = true;
  made_again.returns_nothing = true;
  is_constant(call.callable);
  made_again.callable.object = Ref::borrow(call.callable);
  CallTensors tensors;
  bool is_known = true;
  for (std::size_t i = 0; is_known && i < call.count; ++i) {
    is_known = describe_argument(call.args[i], made_again.arguments.emplace_back(), tensors);
  }
  // A change of a constant's values would be one of all runs.
  if (!is_known || call.names != nullptr) return plainly("an array is changed in place");
  if (tensors.vary) fix_all_sizes("NumPy");
  PyObject* result = call_unseen(call);
  if (result == nullptr) {
    const Ref error = take_raised();
    if (stop(a, "a change of an array raised", false)) set_raised(error);
    return nullptr;
  }
  if (result != Py_None && result != changed) {
    if (!stop(a, "an array is changed in place")) Py_CLEAR(result);
    return result;
  }
  has_array_calls_ = true;
  if (!tensors.are_fixed) forget_fixed_arrays();
  std::vector<graph::Argument>& items = tensors.nodes.items;
  const graph::Argument first = items.front();
  items.erase(items.begin());
  graph::Node& node = graph_->call_function(
      kPythonChange,
      {add_python_call(std::move(made_again)), first, graph::Argument(std::move(tensors.nodes))});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  return result;
}

PyObject* Recorder::array_operator(Activation& a, const char* name, PyObject* left,
                                   PyObject* right) {
  static PyObject* const module = import_module("operator");
  const char* base = std::string_view(name).data() + std::string_view("operator.").size();
  const Ref function = Ref::steal(PyObject_GetAttrString(module, base));
  is_constant(function.get());
  PyObject* args[] = {nullptr, left, right};
  const Call call{function.get(), args + 1, right == nullptr ? 1U : 2U, nullptr};
  const bool changes = base[0] == 'i' && is_array(left) && std::string_view(base) != "invert";
  return changes ? change_array(a, call) : call_array_function(a, call);
}

PyObject* Recorder::array_attribute(Activation& a, PyObject* array, PyObject* name) {
  const std::string text = to_string(name);
  const bool is_metadata = is_metadata_of_array(text);
  if ((!is_metadata && !is_view_of_array(text)) || array_node(array) == nullptr) {
    if (!stop(a, "the attribute '" + text + "' of an array")) return nullptr;
    return PyObject_GenericGetAttr(array, name);
  }
  if (is_metadata) {
    PyObject* found = PyObject_GenericGetAttr(array, name);
    if (found != nullptr && describes_arrays(found)) {
      is_constant(found);
      return found;
    }
    return made(a, found, "an attribute of an array");
  }
  PyObject* const function = find_builtin("getattr");
  is_constant(function);
  PyObject* args[] = {nullptr, array, name};
  return call_array_function(a, {function, args + 1, 2, nullptr});
}

PyObject* Recorder::items_of_array(Activation& a, PyObject* array) {
  PyObject* const function = reinterpret_cast<PyObject*>(&PyList_Type);
  is_constant(function);
  PyObject* args[] = {nullptr, array};
  return call_array_function(a, {function, args + 1, 1, nullptr});
}

}  // namespace assay::capture
