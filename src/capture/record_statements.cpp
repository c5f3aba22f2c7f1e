// Statements that call something: `with`, `raise` and `except`, `import`, `match`.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

// ---- Context managers and exceptions ----

PyObject* Recorder::before_with(Activation& a, Operand manager, PyObject** exit) {
  if (!is_recording()) return Operations::before_with(a, manager, exit);
  static PyObject* const enter_name = PyUnicode_InternFromString("__enter__");
  static PyObject* const exit_name = PyUnicode_InternFromString("__exit__");
  PyObject* object = manager.object;
  PyObject* enter_function = nullptr;
  PyObject* exit_function = nullptr;
  if (touch(object) && !is_scalar(object)) {
    enter_function = lookup_on_type(Py_TYPE(object), enter_name);
    exit_function = lookup_on_type(Py_TYPE(object), exit_name);
  }
  if (enter_function == nullptr || exit_function == nullptr || !PyFunction_Check(enter_function) ||
      !PyFunction_Check(exit_function)) {
    if (!stop(a, std::string("a with block of an object of type '") + Py_TYPE(object)->tp_name +
                     "', which is not modelled")) {
      return nullptr;
    }
    return Operations::before_with(a, manager, exit);
  }
  is_constant(enter_function);
  is_constant(exit_function);
  PyObject* bound = PyMethod_New(exit_function, object);
  if (bound == nullptr) return nullptr;
  tracked_.add(bound, Tracked::Kind::local).is_known = true;
  PyObject* args[] = {nullptr, object};
  PyObject* result = call_object(a, {enter_function, args + 1, 1, nullptr});
  if (result == nullptr) {
    Py_DECREF(bound);
    return nullptr;
  }
  *exit = bound;
  return result;
}

PyObject* Recorder::with_except_start(Activation& a, PyObject* exit, PyObject* exception) {
  if (!is_recording()) return Operations::with_except_start(a, exit, exception);
  const Ref traceback = Ref::steal(PyException_GetTraceback(exception));
  PyObject* args[] = {nullptr, reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception,
                      traceback ? traceback.get() : Py_None};
  is_constant(args[1]);
  for (PyObject* object : {exception, args[3]}) {
    if (!is_scalar(object) && tracked_.find(object) == nullptr) {
      tracked_.add(object, Tracked::Kind::local);
    }
  }
  return call_object(a, {exit, args + 1, 3, nullptr});
}

void Recorder::raise(Activation& a, Operand exception, Operand cause) {
  if (is_recording()) {
    read(exception);
    if (exception.object != nullptr) touch(exception.object);
    // A class is instantiated by raise: its __init__ may be Python code.
    if (exception.object != nullptr && PyExceptionClass_Check(exception.object)) {
      PyObject* no_args[] = {nullptr};
      const Ref instance = Ref::steal(call_object(a, {exception.object, no_args + 1, 0, nullptr}));
      if (!instance) return;
      Operations::raise(a, {instance.get(), nullptr}, cause);
      return;
    }
  }
  Operations::raise(a, exception, cause);
}

int Recorder::exception_matches(Activation& a, PyObject* exception, Operand type) {
  if (is_recording()) know_all(type.object);
  return Operations::exception_matches(a, exception, type);
}

void Recorder::handling(Activation& a, PyObject* exception) {
  if (!is_recording()) return;
  if (tracked_.find(exception) == nullptr) tracked_.add(exception, Tracked::Kind::local);
  if (&a == root_) ++handling_;
}

// ---- The rest ----

PyObject* Recorder::import_name(Activation& a, PyObject* name, Operand from_list, Operand level) {
  if (is_recording()) {
    PyObject* modules = PyImport_GetModuleDict();
    if (PyDict_GetItem(modules, name) == nullptr &&
        !stop(a, "an import of a module that is not loaded")) {
      return nullptr;
    }
  }
  const SuspendScope suspended(*this);  // a package's submodules are looked for in Python
  PyObject* module = Operations::import_name(a, name, from_list, level);
  if (is_recording() && module != nullptr) {
    know_import(name);
    const Ref full_name = Ref::steal(PyObject_GetAttrString(module, "__name__"));
    PyErr_Clear();
    if (full_name && PyUnicode_Check(full_name.get())) know_import(full_name.get());
    is_constant(module);
  }
  return module;
}

// What `import` finds in sys.modules, where somebody may put another module.
void Recorder::know_import(PyObject* name) {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* found = PyDict_GetItem(modules, name);
  if (found == nullptr) return;
  is_constant(modules);
  PyObject* interned_name = Py_NewRef(name);
  PyUnicode_InternInPlace(&interned_name);
  const Ref kept = Ref::steal(interned_name);
  read_item(modules, interned_name);
  touch(found);
}

PyObject* Recorder::import_from(Activation& a, Operand module, PyObject* name) {
  if (!is_recording() || !PyModule_Check(module.object)) {
    return Operations::import_from(a, module, name);
  }
  PyObject* found = get_attribute(a, module.object, name);
  if (found != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return found;
  PyErr_Clear();
  PyObject* imported = Operations::import_from(a, module, name);
  if (is_recording() && imported != nullptr) is_constant(imported);
  return imported;
}

PyObject* Recorder::match_keys(Activation& a, Operand subject, Operand keys) {
  if (is_recording()) {
    read(subject);
    if (!PyDict_CheckExact(subject.object) || !know_contents(subject.object)) {
      if (!stop(a, "a match on a mapping that is not modelled")) return nullptr;
    }
  }
  PyObject* result = Operations::match_keys(a, subject, keys);
  return is_recording() ? made(a, result, "a match") : result;
}

// case Point(1, y=2): the attributes of an instance, by name and by the class's __match_args__.
PyObject* Recorder::match_attributes(Activation& a, PyObject* subject, PyObject* type, int count,
                                     PyObject* names) {
  static PyObject* const isinstance =
      PyObject_GetAttrString(Ref::steal(import_module("builtins")).get(), "isinstance");
  static PyObject* const match_args = PyUnicode_InternFromString("__match_args__");
  const auto plainly = [&]() -> PyObject* {
    if (!stop(a, "a match on a class that is not modelled")) return nullptr;
    return Operations::match_class(a, {subject, nullptr}, {type, nullptr}, count, names);
  };
  PyObject* args[] = {nullptr, subject, type};
  is_constant(isinstance);
  const Ref matches = Ref::steal(call_object(a, {isinstance, args + 1, 2, nullptr}));
  if (!matches) return nullptr;
  if (matches.get() == Py_False) return Py_NewRef(Py_None);
  std::vector<PyObject*> wanted;
  Ref positional;
  if (count > 0 && is_recording()) {
    if (lookup_on_type(reinterpret_cast<PyTypeObject*>(type), match_args) == nullptr) {
      return plainly();  // a builtin type, which matches itself
    }
    positional = Ref::steal(get_attribute(a, type, match_args));
    if (!positional) return nullptr;
    if (!PyTuple_CheckExact(positional.get()) || PyTuple_GET_SIZE(positional.get()) < count) {
      return plainly();  // raises
    }
    for (int i = 0; i < count; ++i) wanted.push_back(PyTuple_GET_ITEM(positional.get(), i));
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    wanted.push_back(PyTuple_GET_ITEM(names, i));
  }
  if (!is_recording()) return plainly();
  std::vector<Ref> found;
  std::vector<PyObject*> values;
  for (PyObject* name : wanted) {
    if (!PyUnicode_CheckExact(name) || std::ranges::count(wanted, name) > 1) return plainly();
    found.push_back(Ref::steal(is_recording() ? get_attribute(a, subject, name)
                                              : PyObject_GetAttr(subject, name)));
    if (!found.back()) {
      if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return nullptr;
      PyErr_Clear();
      return Py_NewRef(Py_None);
    }
    values.push_back(found.back().get());
  }
  const std::vector<Source*> origins(values.size(), nullptr);
  return build_tuple(a, values.data(), origins.data(), values.size());
}

PyObject* Recorder::match_class(Activation& a, Operand subject, Operand type, int count,
                                PyObject* names) {
  if (is_recording()) {
    read(subject);
    const bool is_simple = is_scalar(subject.object) ||
                           (touch(subject.object) && count == 0 && PyTuple_GET_SIZE(names) == 0);
    if (!is_simple && PyType_Check(type.object) && touch(subject.object) && touch(type.object)) {
      return match_attributes(a, subject.object, type.object, count, names);
    }
    if (!is_simple && !stop(a, "a match on a class that is not modelled")) return nullptr;
  }
  PyObject* result = Operations::match_class(a, subject, type, count, names);
  return is_recording() ? made(a, result, "a match") : result;
}

bool Recorder::matches_kind(Activation& a, Operand subject, unsigned long type_flag) {
  if (is_recording()) {
    read(subject);
    touch(subject.object);
  }
  return Operations::matches_kind(a, subject, type_flag);
}

void Recorder::unusual(Activation& a, const char* what) {
  // Making a generator runs nothing of the program; it is followed when it is resumed.
  if (std::string_view(what) == "creating a generator") return;
  if (is_recording()) stop(a, std::string("the instruction ") + what + " is not modelled");
}

}  // namespace assay::capture
