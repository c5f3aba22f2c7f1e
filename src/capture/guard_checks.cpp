#include "capture/guard_checks.h"

#include "capture/constant_objects.h"
#include "capture/dict_order.h"
#include "capture/source.h"

namespace assay::capture {

namespace {

// Of dicts and sets: values, tuples of values, or the same object.
bool same_key(PyObject* key, PyObject* expected) {
  if (key == expected) return true;
  if (is_scalar(key)) return same_scalar(key, expected);
  if (!PyTuple_CheckExact(key) || !PyTuple_CheckExact(expected) ||
      PyTuple_GET_SIZE(key) != PyTuple_GET_SIZE(expected)) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    if (!same_key(PyTuple_GET_ITEM(key, i), PyTuple_GET_ITEM(expected, i))) return false;
  }
  return true;
}

}  // namespace

bool same_order(PyObject* set, PyObject* items) {
  if (!PyAnySet_Check(set) || PySet_GET_SIZE(set) != PyTuple_GET_SIZE(items)) return false;
  PyObject* item = nullptr;
  Py_ssize_t position = 0;
  Py_hash_t hash = 0;
  for (Py_ssize_t i = 0; _PySet_NextEntry(set, &position, &item, &hash) != 0; ++i) {
    if (!same_key(item, PyTuple_GET_ITEM(items, i))) return false;
  }
  return true;
}

bool same_keys(PyObject* dict, PyObject* keys) {
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  const auto is_expected = [&](PyObject* key, Py_ssize_t i) {
    return same_key(key, PyTuple_GET_ITEM(keys, i));
  };
  if (PyODict_Check(dict)) {  // keeps its order outside of the dict
    const Ref now = keys_in_order(dict);
    if (!now) {
      PyErr_Clear();
      return false;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(now.get()); ++i) {
      if (!is_expected(PyList_GET_ITEM(now.get(), i), i)) return false;
    }
    return true;
  }
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  for (Py_ssize_t i = 0; PyDict_Next(dict, &position, &key, nullptr) != 0; ++i) {
    if (!is_expected(key, i)) return false;
  }
  return true;
}

Py_ssize_t length_of(PyObject* object) {
  if (PyList_Check(object)) return PyList_GET_SIZE(object);
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object);
  if (PyDict_Check(object)) return PyDict_GET_SIZE(object);
  if (PyAnySet_Check(object)) return PySet_GET_SIZE(object);
  const Py_ssize_t length = PyObject_Size(object);
  if (length < 0) PyErr_Clear();
  return length;
}

bool same_function(PyObject* object, PyObject* expected) {
  if (!PyFunction_Check(object)) return false;
  const auto* function = reinterpret_cast<PyFunctionObject*>(object);
  const auto or_none = [](PyObject* value) { return value == nullptr ? Py_None : value; };
  return function->func_code == PyTuple_GET_ITEM(expected, 0) &&
         or_none(function->func_defaults) == PyTuple_GET_ITEM(expected, 1) &&
         or_none(function->func_kwdefaults) == PyTuple_GET_ITEM(expected, 2) &&
         function->func_globals == PyTuple_GET_ITEM(expected, 3);
}

bool is_equal(PyObject* left, PyObject* right) {
  const int equal = PyObject_RichCompareBool(left, right, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

bool same_value(PyObject* object, PyObject* expected) {
  if (is_scalar(expected) || is_value_of_subclass(expected)) return same_scalar(object, expected);
  if (PyAnySet_Check(expected)) return PyAnySet_Check(object) && is_equal(object, expected);
  if (Py_TYPE(object) != Py_TYPE(expected)) return false;
  return is_equal(object, expected);  // torch.device, range
}

bool is_int64(PyObject* object) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

}  // namespace assay::capture
