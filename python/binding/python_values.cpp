#include "python_values.h"

#include <pybind11/complex.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include "assay/error.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

using aten::Value;
using Kind = Value::Kind;

Value sequence_from(Kind kind, py::handle object) {
  std::vector<Value> items;
  for (py::handle item : py::reinterpret_borrow<py::iterable>(object)) {
    items.push_back(from_python(item));
  }
  return Value::sequence(kind, std::move(items));
}

Value dict_from(py::handle object) {
  Value made;
  made.kind = Kind::dict;
  for (auto [key, item] : py::reinterpret_borrow<py::dict>(object)) {
    if (!PyUnicode_Check(key.ptr()))
      throw UserError("the keys of a dict in a graph must be strings");
    made.keys.push_back(py::cast<std::string>(key));
    made.items.push_back(from_python(item));
  }
  return made;
}

Value slice_from(PyObject* object) {
  const auto* slice = reinterpret_cast<PySliceObject*>(object);
  return Value::sequence(
      Kind::slice, {from_python(slice->start), from_python(slice->stop), from_python(slice->step)});
}

template <typename Enumeration>
Value enumeration(Kind kind, Enumeration value) {
  return {kind, static_cast<std::int64_t>(value)};
}

py::object leaf_to_python(const c10::IValue& leaf) {
  if (leaf.isTensor() && !leaf.toTensor().defined()) return py::none();
  return torch::jit::toPyObject(leaf);
}

template <typename Container>
py::object items_to_python(const std::vector<Value>& items) {
  py::list list;
  for (const Value& item : items) list.append(to_python(item));
  return Container(list);
}

}  // namespace

Value from_python(py::handle handle) {
  PyObject* object = handle.ptr();
  if (object == Py_None) return Value();
  if (THPVariable_Check(object)) return c10::IValue(THPVariable_Unpack(object));
  if (PyBool_Check(object)) return c10::IValue(object == Py_True);
  if (PyLong_Check(object)) return c10::IValue(py::cast<std::int64_t>(handle));
  if (PyFloat_Check(object)) return c10::IValue(PyFloat_AS_DOUBLE(object));
  if (PyComplex_Check(object)) {
    return c10::IValue(c10::complex<double>(py::cast<std::complex<double>>(handle)));
  }
  if (PyUnicode_Check(object)) return c10::IValue(py::cast<std::string>(handle));
  if (PyTuple_Check(object)) return sequence_from(Kind::tuple, handle);
  if (PyList_Check(object)) return sequence_from(Kind::list, handle);
  if (PyDict_Check(object)) return dict_from(handle);
  if (PySlice_Check(object)) return slice_from(object);
  if (object == Py_Ellipsis) return {Kind::ellipsis, c10::IValue()};
  if (THPDtype_Check(object)) {
    return enumeration(Kind::dtype, reinterpret_cast<THPDtype*>(object)->scalar_type);
  }
  if (THPDevice_Check(object)) return c10::IValue(reinterpret_cast<THPDevice*>(object)->device);
  if (THPLayout_Check(object)) {
    return enumeration(Kind::layout, reinterpret_cast<THPLayout*>(object)->layout);
  }
  if (THPMemoryFormat_Check(object)) {
    return enumeration(Kind::memory_format,
                       reinterpret_cast<THPMemoryFormat*>(object)->memory_format);
  }
  throw UserError("a graph cannot hold a Python object of type '" +
                  py::cast<std::string>(py::str(py::type::handle_of(handle))) + "'");
}

std::vector<Value> values_from(const py::iterable& objects) {
  std::vector<Value> values;
  for (py::handle object : objects) values.push_back(from_python(object));
  return values;
}

py::object to_python(const Value& value) {
  switch (value.kind) {
    case Kind::leaf:
      return leaf_to_python(value.leaf);
    case Kind::dtype: {
      const auto dtype = static_cast<c10::ScalarType>(value.leaf.toInt());
      return py::reinterpret_borrow<py::object>(
          reinterpret_cast<PyObject*>(torch::getTHPDtype(dtype)));
    }
    case Kind::layout: {
      const auto layout = static_cast<c10::Layout>(value.leaf.toInt());
      return py::reinterpret_borrow<py::object>(
          reinterpret_cast<PyObject*>(torch::getTHPLayout(layout)));
    }
    case Kind::memory_format: {
      const auto format = static_cast<c10::MemoryFormat>(value.leaf.toInt());
      return py::reinterpret_borrow<py::object>(torch::utils::getTHPMemoryFormat(format));
    }
    case Kind::ellipsis:
      return py::ellipsis();
    case Kind::list:
      return items_to_python<py::list>(value.items);
    case Kind::tuple:
      return items_to_python<py::tuple>(value.items);
    case Kind::slice:
      return py::slice(to_python(value.items[0]), to_python(value.items[1]),
                       to_python(value.items[2]));
    case Kind::dict: {
      py::dict dict;
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        dict[py::str(value.keys[i])] = to_python(value.items[i]);
      }
      return dict;
    }
    case Kind::name:
    case Kind::subgraph:
      break;
  }
  throw UserError("a graph cannot return " + aten::type_name(value));
}

}  // namespace assay::binding
