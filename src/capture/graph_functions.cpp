// Which callables are functions of tensors, and what a graph calls them.
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

#include "aten/torch_functions.h"
#include "capture/hook.h"
#include "capture/models.h"
#include "capture/ref.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

using Functions = std::unordered_map<PyObject*, GraphFunction>;

// A Python function of torch is one call in the graph if the runner knows it by that name;
// otherwise its body is followed.
bool is_one_call(PyObject* function, const std::string& name, bool is_method) {
  if (!PyFunction_Check(function)) return true;
  return is_method ? aten::find_torch_method(name) != nullptr
                   : aten::find_torch_function(name) != nullptr;
}

void add_module(Functions& functions, const char* module_name, const std::string& prefix) {
  const Ref module = Ref::steal(import_module(module_name));
  if (!module) {
    PyErr_Clear();
    return;
  }
  PyObject* dict = PyObject_GenericGetDict(module.get(), nullptr);
  if (dict == nullptr) {
    PyErr_Clear();
    return;
  }
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(dict, &position, &key, &value) != 0) {
    if (!PyUnicode_Check(key) || !(PyCFunction_Check(value) || PyFunction_Check(value))) continue;
    const std::string name = prefix + to_string(key);
    if (!is_one_call(value, name, false)) continue;
    if (functions.emplace(value, GraphFunction{name, false}).second) Py_INCREF(value);
  }
  Py_DECREF(dict);
}

void add_methods(Functions& functions) {
  // Names in a fixed order: an alias gets the first one.
  for (PyTypeObject* type : {tensor_type(), tensor_type()->tp_base}) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(type->tp_dict, &position, &key, &value) != 0) {
      if (Py_TYPE(value) != &PyMethodDescr_Type && !PyFunction_Check(value) &&
          Py_TYPE(value) != &PyWrapperDescr_Type) {
        continue;
      }
      const std::string name = to_string(key);
      if (!is_one_call(value, name, true)) continue;
      if (functions.emplace(value, GraphFunction{name, true}).second) Py_INCREF(value);
    }
  }
}

Functions* make_functions() {
  auto* functions = new Functions;
  add_module(*functions, "torch.nn.functional", "torch.nn.functional.");
  add_module(*functions, "torch", "torch.");
  for (const char* name :
       {"torch.linalg", "torch.special", "torch.fft", "torch._C._nn", "torch._C._linalg",
        "torch._C._special", "torch._C._fft", "torch._C._VariableFunctions", "torch._VF"}) {
    add_module(*functions, name, std::string(name) + ".");
  }
  add_methods(*functions);
  return functions;
}

// torch.ops.aten.relu.default and torch.ops.aten.relu, by type.
const GraphFunction* find_operator(PyObject* callable) {
  static PyTypeObject* const overload_type = [] {
    const Ref module = Ref::steal(import_module("torch._ops"));
    return reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), "OpOverload"));
  }();
  static PyTypeObject* const packet_type = [] {
    const Ref module = Ref::steal(import_module("torch._ops"));
    return reinterpret_cast<PyTypeObject*>(
        PyObject_GetAttrString(module.get(), "OpOverloadPacket"));
  }();
  if (Py_TYPE(callable) != overload_type && Py_TYPE(callable) != packet_type) return nullptr;
  static Functions* const known = new Functions;
  const auto found = known->find(callable);
  if (found != known->end()) return &found->second;
  const NativeFramesScope natively;                     // its __str__ is not the program's
  const Ref text = Ref::steal(PyObject_Str(callable));  // aten.relu.default
  if (!text) {
    PyErr_Clear();
    return nullptr;
  }
  Py_INCREF(callable);
  return &known->emplace(callable, GraphFunction{"torch.ops." + to_string(text.get()), false})
              .first->second;
}

}  // namespace

const GraphFunction* find_graph_function(PyObject* callable) {
  static const Functions* const functions = make_functions();
  const auto found = functions->find(callable);
  if (found != functions->end()) return &found->second;
  return find_operator(callable);
}

const char* comparison_function(int op) {
  constexpr std::array<const char*, 6> names = {"operator.lt", "operator.le", "operator.eq",
                                                "operator.ne", "operator.gt", "operator.ge"};
  return names[static_cast<std::size_t>(op)];
}

}  // namespace assay::capture
