#include "capture/arrays.h"

#include <array>
#include <string_view>

#include "capture/source.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// numpy.<name>, or null where there is no NumPy. Torch has imported it by now if there is.
PyObject* of_numpy(const char* name) {
  const Ref module = Ref::steal(import_module("numpy"));
  PyObject* found = module ? PyObject_GetAttrString(module.get(), name) : nullptr;
  PyErr_Clear();
  return found;
}

PyTypeObject* array_type() {
  static auto* const type = reinterpret_cast<PyTypeObject*>(of_numpy("ndarray"));
  return type;
}

}  // namespace

bool is_array(PyObject* object) {
  return Py_TYPE(object) == array_type() && array_type() != nullptr;
}

bool is_array_scalar(PyObject* object) {
  static auto* const type = reinterpret_cast<PyTypeObject*>(of_numpy("generic"));
  return type != nullptr && PyObject_TypeCheck(object, type) != 0;
}

TensorForm form_of(PyObject* object) {
  if (is_array(object)) return TensorForm::array;
  return is_array_scalar(object) ? TensorForm::scalar : TensorForm::tensor;
}

bool describes_arrays(PyObject* object) {
  static const std::array<PyObject*, 3> types = {of_numpy("dtype"), of_numpy("finfo"),
                                                 of_numpy("iinfo")};
  for (PyObject* type : types) {
    if (type != nullptr && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type)) != 0) {
      return true;
    }
  }
  return false;
}

Ref tensor_of_array(PyObject* array) {
  static PyObject* const from_array = PyObject_GetAttrString(import_module("torch"), "from_numpy");
  static PyObject* const as_array = of_numpy("array");
  if (is_array(array)) {
    const Ref flags = Ref::steal(PyObject_GetAttrString(array, "flags"));
    const Ref is_writable =
        Ref::steal(flags ? PyObject_GetAttrString(flags.get(), "writeable") : nullptr);
    if (!is_writable || is_writable.get() != Py_True) {
      if (is_writable) PyErr_SetString(PyExc_ValueError, "a tensor on an array that is read-only");
      return {};
    }
    return Ref::steal(PyObject_CallOneArg(from_array, array));
  }
  const Ref copy = Ref::steal(PyObject_CallOneArg(as_array, array));
  return copy ? Ref::steal(PyObject_CallOneArg(from_array, copy.get())) : Ref();
}

Ref array_of_tensor(PyObject* tensor, TensorForm form) {
  if (form == TensorForm::tensor) return Ref::borrow(tensor);
  const Ref plain = Ref::steal(PyObject_CallMethod(tensor, "detach", nullptr));
  Ref array = plain ? Ref::steal(PyObject_CallMethod(plain.get(), "numpy", nullptr)) : Ref();
  if (!array || form == TensorForm::array) return array;
  static PyObject* const whole = PyTuple_New(0);
  return Ref::steal(PyObject_GetItem(array.get(), whole));
}

bool arrays_of_result(PyObject* result, std::vector<PyObject*>& found, int depth) {
  if (is_tensor(result) || is_array(result) || is_array_scalar(result)) {
    found.push_back(result);
    return true;
  }
  if (depth > 20) return false;
  if (!PyTuple_Check(result) && !PyList_CheckExact(result)) return result == Py_None;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
    if (!arrays_of_result(PySequence_Fast_GET_ITEM(result, i), found, depth + 1)) return false;
  }
  return true;
}

}  // namespace assay::capture
