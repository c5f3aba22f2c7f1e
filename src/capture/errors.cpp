#include "capture/errors.h"

#include "capture/reference.h"

namespace assay::capture {

namespace {

void raise_about(PyObject* kind, const char* message, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text != nullptr) PyErr_Format(kind, message, text);
}

// So that the traceback module can suggest similar names.
void remember_name(PyObject* name) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (PyErr_GivenExceptionMatches(value, PyExc_NameError) != 0 &&
      reinterpret_cast<PyNameErrorObject*>(value)->name == nullptr) {
    PyObject_SetAttrString(value, "name", name);
  }
  PyErr_Restore(type, value, traceback);
}

}  // namespace

void raise_name_error(PyObject* name) {
  raise_about(PyExc_NameError, "name '%.200s' is not defined", name);
  remember_name(name);
}

void raise_unbound(const PyCodeObject* code, int index) {
  PyObject* name = local_name_at(code, index);
  if (index < code->co_nlocals + code->co_nplaincellvars) {
    raise_about(PyExc_UnboundLocalError,
                "cannot access local variable '%s' where it is not associated with a value", name);
    return;
  }
  raise_about(PyExc_NameError,
              "cannot access free variable '%s' where it is not associated with a value in "
              "enclosing scope",
              name);
  remember_name(name);
}

void raise_cannot_import(PyObject* module, PyObject* package, PyObject* name) {
  const Reference path = Reference::steal(PyModule_GetFilenameObject(module));
  const Reference shown = package != nullptr
                              ? Reference::borrow(package)
                              : Reference::steal(PyUnicode_FromString("<unknown module name>"));
  if (!shown) return;
  if (!path || !PyUnicode_Check(path.get())) {
    PyErr_Clear();
    const Reference message = Reference::steal(PyUnicode_FromFormat(
        "cannot import name %R from %R (unknown location)", name, shown.get()));
    PyErr_SetImportError(message.get(), package, nullptr);
    return;
  }
  const Reference spec = Reference::steal(PyObject_GetAttrString(module, "__spec__"));
  const char* format = _PyModuleSpec_IsInitializing(spec.get()) != 0
                           ? "cannot import name %R from partially initialized module %R "
                             "(most likely due to a circular import) (%S)"
                           : "cannot import name %R from %R (%S)";
  const Reference message =
      Reference::steal(PyUnicode_FromFormat(format, name, shown.get(), path.get()));
  PyErr_SetImportError(message.get(), package, path.get());
}

void reword_kwargs_error(PyObject* function, PyObject* kwargs) {
  if (PyErr_ExceptionMatches(PyExc_AttributeError) != 0) {
    // It has no keys().
    PyErr_Clear();
    const Reference name = Reference::steal(_PyObject_FunctionStr(function));
    if (!name) return;
    PyErr_Format(PyExc_TypeError, "%U argument after ** must be a mapping, not %.200s", name.get(),
                 Py_TYPE(kwargs)->tp_name);
    return;
  }
  if (PyErr_ExceptionMatches(PyExc_KeyError) == 0) return;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  // Not an exception yet but its arguments: a key that is there already.
  if (value == nullptr || !PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 1) {
    PyErr_Restore(type, value, traceback);
    return;
  }
  const Reference name = Reference::steal(_PyObject_FunctionStr(function));
  if (name) {
    PyErr_Format(PyExc_TypeError, "%U got multiple values for keyword argument '%S'", name.get(),
                 PyTuple_GET_ITEM(value, 0));
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

bool check_args_iterable(PyObject* function, PyObject* args) {
  if (Py_TYPE(args)->tp_iter != nullptr || PySequence_Check(args) != 0) return true;
  PyErr_Clear();
  const Reference name = Reference::steal(_PyObject_FunctionStr(function));
  if (name) {
    PyErr_Format(PyExc_TypeError, "%U argument after * must be an iterable, not %.200s", name.get(),
                 Py_TYPE(args)->tp_name);
  }
  return false;
}

}  // namespace assay::capture
