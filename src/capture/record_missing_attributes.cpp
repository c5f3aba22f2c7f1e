// Attributes that are not found: __getattr__ is asked for them.
#include "capture/models.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

// __getattr__ is asked as well where a property or __getattribute__ raises AttributeError.
PyObject* Recorder::after_attribute_error(Activation& a, PyObject* object, PyObject* name) {
  static PyObject* const getattr = PyUnicode_InternFromString("__getattr__");
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return nullptr;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);  // a lookup clears what is set
  if (_PyType_Lookup(Py_TYPE(object), getattr) == nullptr) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  if (is_recording()) return fallback_attribute(a, object, name);
  PyObject* args[] = {object, name};
  return PyObject_VectorcallMethod(getattr, args, 2, nullptr);
}

PyObject* Recorder::fallback_attribute(Activation& a, PyObject* object, PyObject* name) {
  static PyObject* const getattr = PyUnicode_InternFromString("__getattr__");
  static PyObject* const module_getattr_function = _PyType_Lookup(module_type(), getattr);
  PyObject* fallback = lookup_on_type(Py_TYPE(object), getattr);
  if (fallback == nullptr) return PyObject_GenericGetAttr(object, name);  // raises AttributeError
  if (fallback == module_getattr_function) {
    bool found = false;
    PyObject* value = module_getattr(object, name, found);
    if (found) return Py_NewRef(value);
    if (PyErr_Occurred() != nullptr) return nullptr;
    return PyObject_GetAttr(object, name);  // raises, by reading what was guarded
  }
  if (!PyFunction_Check(fallback)) {
    if (!stop(a, "__getattr__ is not a Python function")) return nullptr;
    return PyObject_GetAttr(object, name);
  }
  is_constant(fallback);
  PyObject* args[] = {nullptr, object, name};
  return call_object(a, {fallback, args + 1, 2, nullptr});
}

}  // namespace assay::capture
