#include "capture/callables.h"

#include "capture/code_facts.h"
#include "capture/constant_objects.h"
#include "capture/source.h"
#include "capture/torch_types.h"

namespace assay::capture {

std::string name_of(PyObject* callable) {
  const Ref name = Ref::steal(PyObject_GetAttrString(callable, "__qualname__"));
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return std::string("an object of type '") + Py_TYPE(callable)->tp_name + "'";
  }
  const Ref module = Ref::steal(PyObject_GetAttrString(callable, "__module__"));
  PyErr_Clear();
  const bool has_module = module && PyUnicode_Check(module.get());
  return "'" + (has_module ? to_string(module.get()) + "." : std::string()) +
         to_string(name.get()) + "'";
}

std::optional<std::string> disabled_reason(PyObject* function) {
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  if (dict == nullptr) return std::nullopt;
  static PyObject* const names[] = {PyUnicode_InternFromString("_assay_disable"),
                                    PyUnicode_InternFromString("_torchdynamo_disable")};
  for (PyObject* name : names) {
    PyObject* found = PyDict_GetItem(dict, name);
    if (found == nullptr || found == Py_None || found == Py_False) continue;
    const std::string text = name_of(function) + " is marked to be run eagerly";
    return PyUnicode_Check(found) ? text + ": " + to_string(found) : text;
  }
  return std::nullopt;
}

PyObject* wrapped_by_stock(PyObject* function) {
  static PyObject* const name = PyUnicode_InternFromString("_torchdynamo_orig_callable");
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  PyObject* found = dict == nullptr ? nullptr : PyDict_GetItem(dict, name);
  const bool is_of_optimizers =
      found != nullptr && PyFunction_Check(found) &&
      is_code_of_optimizers(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(found)));
  return is_of_optimizers ? found : nullptr;
}

bool is_marked(PyObject* function, PyObject* mark) {
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  return dict != nullptr && PyDict_GetItem(dict, mark) == Py_True;
}

bool is_of_stocks_compiler(PyFunctionObject* function) {
  static PyObject* const key = PyUnicode_InternFromString("__name__");
  PyObject* module = PyDict_GetItem(function->func_globals, key);
  if (module == nullptr || !PyUnicode_Check(module)) return false;
  const std::string name = to_string(module);
  // These do not compile: they wrap nn.Module.__init__, and functions of NumPy, and assert in
  // tests.
  for (const char* other : {"mutation_guard", "test_case", "external_utils"}) {
    if (name == std::string("torch._dynamo.") + other) return false;
  }
  return name.starts_with("torch._dynamo") || name.starts_with("torch._inductor");
}

PyObject* scripted_function(PyObject* callable) {
  static PyTypeObject* const type = [] {
    const Ref module = Ref::steal(import_module("torch._C"));
    return reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), "ScriptFunction"));
  }();
  if (Py_TYPE(callable) != type) return nullptr;
  const Ref function = Ref::steal(PyObject_GetAttrString(callable, "_torchdynamo_inline"));
  PyErr_Clear();
  return function && PyFunction_Check(function.get()) ? function.get() : nullptr;  // kept by it
}

bool is_cached(PyObject* callable) {
  static PyTypeObject* const type = [] {
    const Ref module = Ref::steal(import_module("functools"));
    return reinterpret_cast<PyTypeObject*>(
        PyObject_GetAttrString(module.get(), "_lru_cache_wrapper"));
  }();
  return Py_TYPE(callable) == type;
}

// functools.lru_cache of a library: whether a package is installed, a warning that is given once.
// For these arguments it has been called now, so that later calls have no effects, and its result
// is what it is. A program's own function may be told to forget its results.
bool is_cached_by_library(PyObject* callable) {
  if (!is_cached(callable)) return false;
  const Ref module = Ref::steal(PyObject_GetAttrString(callable, "__module__"));
  PyErr_Clear();
  if (!module || !PyUnicode_Check(module.get())) return false;
  const std::string name = to_string(module.get());
  return name.starts_with("transformers.utils.") || name == "torch" || name.starts_with("torch.");
}

}  // namespace assay::capture
