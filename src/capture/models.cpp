#include "capture/models.h"

#include <string>
#include <string_view>
#include <unordered_map>

#include "capture/constant_objects.h"
#include "capture/models/table.h"
#include "capture/ref.h"
#include "capture/torch_types.h"

namespace assay::capture {

// The object with a dotted name: the longest prefix that is a module, then attributes. For a method
// of a type its descriptor, not a bound method.
Ref find_by_name(std::string_view name) {
  std::size_t end = name.rfind('.');
  while (end != std::string_view::npos) {
    const std::string module_name(name.substr(0, end));
    Ref found = Ref::steal(import_module(module_name.c_str()));
    if (!found) {
      PyErr_Clear();
      end = name.rfind('.', end - 1);
      continue;
    }
    std::size_t start = end + 1;
    while (found && start <= name.size()) {
      const std::size_t dot = std::min(name.find('.', start), name.size());
      const std::string part(name.substr(start, dot - start));
      PyObject* in_type = nullptr;
      if (PyType_Check(found.get())) {
        const Ref key = Ref::steal(PyUnicode_InternFromString(part.c_str()));
        in_type = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(found.get()), key.get());
        if (in_type != nullptr && Py_TYPE(in_type) == &PyStaticMethod_Type) in_type = nullptr;
        if (in_type != nullptr && Py_TYPE(in_type) == &PyClassMethod_Type) {
          // What is called, with its class first.
          found = Ref::steal(PyObject_GetAttrString(in_type, "__func__"));
          start = dot + 1;
          continue;
        }
      }
      found = in_type != nullptr ? Ref::borrow(in_type)
                                 : Ref::steal(PyObject_GetAttrString(found.get(), part.c_str()));
      start = dot + 1;
    }
    PyErr_Clear();
    return found;
  }
  return {};
}

namespace {

struct Models {
  std::unordered_map<PyObject*, Model> by_object;
  std::unordered_map<PyObject*, Model> by_code;    // functions that are made again and again
  std::unordered_map<std::string, Model> by_name;  // of stock's compiler
};

// Compiling must not import stock's compiler, and a program may import it at any time: its
// functions are found by their names.
constexpr std::string_view stock_compiler = "torch._dynamo";

// The code of a function that another one defines: `module.outer.<locals>.inner`. Null if there is
// none.
PyObject* find_local_code(std::string_view name) {
  constexpr std::string_view between = ".<locals>.";
  const std::size_t at = name.find(between);
  if (at == std::string_view::npos) return nullptr;
  const Ref outer = find_by_name(name.substr(0, at));
  if (!outer || !PyFunction_Check(outer.get())) return nullptr;
  const std::string inner(name.substr(at + between.size()));
  PyObject* constants =
      reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(outer.get()))->co_consts;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); ++i) {
    PyObject* constant = PyTuple_GET_ITEM(constants, i);
    if (PyCode_Check(constant) &&
        PyUnicode_CompareWithASCIIString(reinterpret_cast<PyCodeObject*>(constant)->co_name,
                                         inner.c_str()) == 0) {
      return constant;
    }
  }
  return nullptr;
}

Models* make_models() {
  auto* models = new Models;  // lives as long as the process, and keeps the functions alive
  for (const ModelTable& table :
       {builtin_models(),   container_models(),      dict_models(),          collection_models(),
        exception_models(), function_models(),       ordering_models(),      number_models(),
        pattern_models(),   value_models(),          introspection_models(), library_models(),
        copying_models(),   context_models(),        autograd_models(),      transform_models(),
        array_models(),     special_method_models(), mapping_proxy_models(), torch_models()}) {
    for (const ModelRow& row : table) {
      if (std::string_view(row.name).starts_with(stock_compiler)) {
        models->by_name.emplace(row.name, row.model);
      } else if (PyObject* code = find_local_code(row.name)) {
        models->by_code.emplace(Py_NewRef(code), row.model);
      } else if (Ref found = find_by_name(row.name)) {
        // Some names are of one version of PyTorch only.
        models->by_object.emplace(found.release(), row.model);
      }
    }
  }
  return models;
}

}  // namespace

Model find_model(PyObject* callable) {
  static const Models* const models = make_models();
  const auto found = models->by_object.find(callable);
  if (found != models->by_object.end()) return found->second;
  if (!PyFunction_Check(callable)) return nullptr;
  const auto* function = reinterpret_cast<PyFunctionObject*>(callable);
  const auto by_code = models->by_code.find(function->func_code);
  if (by_code != models->by_code.end()) return by_code->second;
  if (function->func_module == nullptr || !PyUnicode_Check(function->func_module)) return nullptr;
  const std::string module = to_string(function->func_module);
  if (!module.starts_with(stock_compiler)) return nullptr;
  const auto named = models->by_name.find(module + "." + to_string(function->func_qualname));
  return named == models->by_name.end() ? nullptr : named->second;
}

void prepare_models() {
  find_model(Py_None);
  find_graph_function(Py_None);
  size_use_of(Py_None);
  is_identity_object(Py_None);
  is_iterator_of_iterators(Py_None);
  module_type();
  parameter_type();
  buffer_type();
}

PyObject* truth(bool value) { return Py_NewRef(value ? Py_True : Py_False); }

Ref items_of(Recorder& recorder, Activation& a, PyObject* iterable) {
  if (is_scalar(iterable) && Py_TYPE(iterable)->tp_iter == nullptr) {
    return Ref::steal(PyObject_GetIter(iterable));  // raises; LIST_EXTEND has another message
  }
  Ref list = Ref::steal(recorder.build_list(a, nullptr, nullptr, 0));
  if (!list || !recorder.list_extend(a, list.get(), {iterable, nullptr})) return {};
  return list;
}

PyObject* pure_model(Recorder& recorder, Activation& a, const Call& call) {
  return recorder.call_pure(a, call);
}

}  // namespace assay::capture
