#include "capture/torch_types.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/Size.h>
#include <torch/csrc/autograd/python_variable.h>

#include "assay/error.h"
#include "capture/ref.h"

namespace assay::capture {

namespace {

PyTypeObject* find_type(const char* module, const char* name) {
  PyObject* found = nullptr;
  if (PyObject* imported = import_module(module)) {
    found = PyObject_GetAttrString(imported, name);
    Py_DECREF(imported);
  }
  if (found == nullptr) {
    PyErr_Clear();
    throw InternalError(std::string(module) + "." + name + " does not exist");
  }
  return reinterpret_cast<PyTypeObject*>(found);  // lives as long as the process
}

}  // namespace

PyTypeObject* size_type() { return &THPSizeType; }

PyTypeObject* tensor_type() {
  static PyTypeObject* const type = find_type("torch", "Tensor");
  return type;
}

PyTypeObject* parameter_type() {
  static PyTypeObject* const type = find_type("torch.nn", "Parameter");
  return type;
}

PyTypeObject* buffer_type() {
  static PyTypeObject* const type = find_type("torch.nn", "Buffer");
  return type;
}

PyTypeObject* module_type() {
  static PyTypeObject* const type = find_type("torch.nn", "Module");
  return type;
}

bool is_tensor(PyObject* object) {
  return PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(THPVariableClass)) != 0;
}

bool is_plain_tensor(PyObject* object) {
  const PyTypeObject* type = Py_TYPE(object);
  return type == tensor_type() || type == parameter_type() || type == buffer_type();
}

const at::Tensor& tensor_of(PyObject* object) { return THPVariable_Unpack(object); }

PyObject* wrap_tensor(const at::Tensor& tensor) { return THPVariable_Wrap(tensor); }

bool is_torch_enum(PyObject* object) {
  return THPDtype_Check(object) || THPLayout_Check(object) || THPMemoryFormat_Check(object);
}

bool is_device(PyObject* object) { return THPDevice_Check(object); }

}  // namespace assay::capture
