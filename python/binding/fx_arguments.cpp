#include "fx_arguments.h"

#include <pybind11/complex.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/tensor_memoryformats.h>

#include "assay/error.h"
#include "fx_targets.h"
#include "graph/annotation.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

using graph::Argument;

PyTypeObject* type_named(const char* module, const char* name) {
  const py::object type = py::module_::import(module).attr(name);
  return reinterpret_cast<PyTypeObject*>(py::object(type).release().ptr());  // never freed
}

bool is_sym_int(PyObject* object) {
  static PyTypeObject* const type = type_named("torch", "SymInt");
  return Py_IS_TYPE(object, type);
}

std::vector<Argument> items_from(py::handle object, const NodesByObject& nodes) {
  std::vector<Argument> items;
  items.reserve(py::len(object));
  for (py::handle item : py::reinterpret_borrow<py::sequence>(object)) {
    items.push_back(argument_from(item, nodes));
  }
  return items;
}

Argument dict_from(py::handle object, const NodesByObject& nodes) {
  graph::Dict made;
  for (auto [key, item] : py::reinterpret_borrow<py::dict>(object)) {
    if (!PyUnicode_Check(key.ptr())) {
      throw UserError("the keys of a dict in a graph must be strings");
    }
    made.keys.push_back(py::cast<std::string>(key));
    made.items.push_back(argument_from(item, nodes));
  }
  return made;
}

Argument slice_from(PyObject* object, const NodesByObject& nodes) {
  const auto* slice = reinterpret_cast<PySliceObject*>(object);
  return graph::Slice{{argument_from(slice->start, nodes), argument_from(slice->stop, nodes),
                       argument_from(slice->step, nodes)}};
}

Argument integer_from(PyObject* object) {
  int overflow = 0;
  const std::int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) {
    throw UserError("the integer " + py::cast<std::string>(py::str(object)) +
                    " does not fit 64 bits");
  }
  return number;
}

template <typename Container>
py::object sequence_object(const std::vector<Argument>& items, const ArgumentObjects& objects) {
  Container made(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) made[i] = argument_object(items[i], objects);
  return made;
}

struct ObjectMaker {
  const ArgumentObjects& objects;

  py::object operator()(const graph::None&) const { return py::none(); }
  py::object operator()(bool value) const { return py::bool_(value); }
  py::object operator()(std::int64_t value) const { return py::int_(value); }
  py::object operator()(double value) const { return py::float_(value); }
  py::object operator()(std::complex<double> value) const { return py::cast(value); }
  py::object operator()(const std::string& value) const { return py::str(value); }
  py::object operator()(c10::ScalarType value) const {
    return py::reinterpret_borrow<py::object>(
        reinterpret_cast<PyObject*>(torch::getTHPDtype(value)));
  }
  py::object operator()(c10::Device value) const {
    return py::reinterpret_steal<py::object>(THPDevice_New(value));
  }
  py::object operator()(c10::Layout value) const {
    return py::reinterpret_borrow<py::object>(
        reinterpret_cast<PyObject*>(torch::getTHPLayout(value)));
  }
  py::object operator()(c10::MemoryFormat value) const {
    return py::reinterpret_borrow<py::object>(torch::utils::getTHPMemoryFormat(value));
  }
  py::object operator()(const graph::Ellipsis&) const { return py::ellipsis(); }
  py::object operator()(const graph::QualifiedName& value) const {
    return object_named(value.name);
  }
  py::object operator()(graph::Node* value) const { return objects.node_object(*value); }
  py::object operator()(const graph::List& value) const {
    return sequence_object<py::list>(value.items, objects);
  }
  py::object operator()(const graph::Tuple& value) const {
    return sequence_object<py::tuple>(value.items, objects);
  }
  py::object operator()(const graph::Slice& value) const {
    return py::slice(argument_object(value.items[0], objects),
                     argument_object(value.items[1], objects),
                     argument_object(value.items[2], objects));
  }
  py::object operator()(const graph::Dict& value) const {
    py::dict made;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      made[py::str(value.keys[i])] = argument_object(value.items[i], objects);
    }
    return made;
  }
  py::object operator()(const graph::SizeExpr& value) const { return objects.size_object(value); }
};

}  // namespace

Argument argument_from(py::handle handle, const NodesByObject& nodes) {
  PyObject* object = handle.ptr();
  if (const auto found = nodes.find(object); found != nodes.end()) return found->second;
  if (object == Py_None) return {};
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object) && PyLong_CheckExact(object)) return integer_from(object);
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (PyUnicode_CheckExact(object)) return py::cast<std::string>(handle);
  if (PyTuple_Check(object)) return graph::Tuple{items_from(handle, nodes)};
  if (PyList_Check(object)) return graph::List{items_from(handle, nodes)};
  if (PyDict_Check(object)) return dict_from(handle, nodes);
  if (PySlice_Check(object)) return slice_from(object, nodes);
  if (object == Py_Ellipsis) return graph::Ellipsis{};
  if (THPDtype_Check(object)) return reinterpret_cast<THPDtype*>(object)->scalar_type;
  if (THPDevice_Check(object)) return reinterpret_cast<THPDevice*>(object)->device;
  if (THPLayout_Check(object)) return reinterpret_cast<THPLayout*>(object)->layout;
  if (THPMemoryFormat_Check(object)) {
    return reinterpret_cast<THPMemoryFormat*>(object)->memory_format;
  }
  if (PyComplex_Check(object)) return py::cast<std::complex<double>>(handle);
  if (is_sym_int(object)) return size_from_text(py::cast<std::string>(py::str(handle)));
  return graph::QualifiedName{qualified_name_of(handle)};
}

py::object argument_object(const Argument& argument, const ArgumentObjects& objects) {
  return std::visit(ObjectMaker{objects}, argument.value());
}

graph::SizeExpr size_from_text(const std::string& text) {
  if (const auto meta = graph::parse_annotation("Sym(" + text + ")")) {
    if (const auto* size = std::get_if<graph::SizeExpr>(&meta->value)) return *size;
  }
  throw UserError("a graph cannot hold the size '" + text + "'");
}

}  // namespace assay::binding
