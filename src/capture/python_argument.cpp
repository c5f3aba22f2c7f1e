#include "capture/python_argument.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>

#include <complex>
#include <string>

#include "capture/torch_types.h"

namespace assay::capture {

bool plain_argument(PyObject* object, graph::Argument& argument) {
  if (object == Py_None) {
    argument = graph::None{};
  } else if (PyBool_Check(object)) {
    argument = object == Py_True;
  } else if (PyLong_Check(object)) {
    const long long number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();  // too large for a graph
      return false;
    }
    argument = static_cast<std::int64_t>(number);
  } else if (PyFloat_Check(object)) {
    argument = PyFloat_AS_DOUBLE(object);
  } else if (PyComplex_CheckExact(object)) {
    const Py_complex number = PyComplex_AsCComplex(object);
    argument = std::complex<double>(number.real, number.imag);
  } else if (PyUnicode_CheckExact(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    argument = std::string(text, static_cast<std::size_t>(size));
  } else if (object == Py_Ellipsis) {
    argument = graph::Ellipsis{};
  } else if (THPDtype_Check(object)) {
    argument = reinterpret_cast<THPDtype*>(object)->scalar_type;
  } else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) {  // as dtypes
    argument = c10::kDouble;
  } else if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    argument = c10::kLong;
  } else if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    argument = c10::kBool;
  } else if (THPDevice_Check(object)) {
    argument = reinterpret_cast<THPDevice*>(object)->device;
  } else if (THPLayout_Check(object)) {
    argument = reinterpret_cast<THPLayout*>(object)->layout;
  } else if (THPMemoryFormat_Check(object)) {
    argument = reinterpret_cast<THPMemoryFormat*>(object)->memory_format;
  } else if (Py_TYPE(object) == size_type()) {
    graph::List sizes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      if (!plain_argument(PyTuple_GET_ITEM(object, i), sizes.items.emplace_back())) return false;
    }
    argument = std::move(sizes);
  } else {
    return false;
  }
  return true;
}

}  // namespace assay::capture
