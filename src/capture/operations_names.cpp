// Names, cells and imports.
#include <array>

#include "capture/errors.h"
#include "capture/operations.h"
#include "capture/reference.h"

namespace assay::capture {

namespace {

// The value of `name` in a namespace, or null; an exception is set unless the name is just missing.
PyObject* look_up(PyObject* mapping, PyObject* name) {
  if (PyDict_CheckExact(mapping)) return Py_XNewRef(PyDict_GetItemWithError(mapping, name));
  PyObject* value = PyObject_GetItem(mapping, name);
  if (value == nullptr && PyErr_ExceptionMatches(PyExc_KeyError) != 0) PyErr_Clear();
  return value;
}

PyObject* look_up_global(Activation& a, PyObject* name) {
  PyObject* value = look_up(a.frame->f_globals, name);
  if (value == nullptr && PyErr_Occurred() == nullptr) value = look_up(a.frame->f_builtins, name);
  if (value == nullptr && PyErr_Occurred() == nullptr) raise_name_error(name);
  return value;
}

bool needs_locals(Activation& a, const char* message, PyObject* name) {
  if (a.frame->f_locals != nullptr) return true;
  PyErr_Format(PyExc_SystemError, message, name);
  return false;
}

}  // namespace

PyObject* Operations::load_global(Activation& a, PyObject* name) { return look_up_global(a, name); }

bool Operations::store_global(Activation& a, PyObject* name, Operand value) {
  return PyDict_SetItem(a.frame->f_globals, name, value.object) == 0;
}

bool Operations::delete_global(Activation& a, PyObject* name) {
  if (PyDict_DelItem(a.frame->f_globals, name) == 0) return true;
  if (PyErr_ExceptionMatches(PyExc_KeyError) != 0) raise_name_error(name);
  return false;
}

PyObject* Operations::load_name(Activation& a, PyObject* name) {
  if (!needs_locals(a, "no locals when loading %R", name)) return nullptr;
  PyObject* value = look_up(a.frame->f_locals, name);
  if (value != nullptr || PyErr_Occurred() != nullptr) return value;
  return look_up_global(a, name);
}

bool Operations::store_name(Activation& a, PyObject* name, Operand value) {
  if (!needs_locals(a, "no locals found when storing %R", name)) return false;
  PyObject* locals = a.frame->f_locals;
  return (PyDict_CheckExact(locals) ? PyDict_SetItem(locals, name, value.object)
                                    : PyObject_SetItem(locals, name, value.object)) == 0;
}

bool Operations::delete_name(Activation& a, PyObject* name) {
  if (!needs_locals(a, "no locals when deleting %R", name)) return false;
  if (PyObject_DelItem(a.frame->f_locals, name) == 0) return true;
  raise_name_error(name);  // whatever went wrong, as CPython does
  return false;
}

PyObject* Operations::load_cell(Activation& a, PyObject* cell, int index) {
  PyObject* value = PyCell_GET(cell);
  if (value == nullptr) raise_unbound(a.code, index);
  return Py_XNewRef(value);
}

bool Operations::store_cell(Activation& /*a*/, PyObject* cell, Operand value) {
  PyObject* old = PyCell_GET(cell);
  PyCell_SET(cell, Py_NewRef(value.object));
  Py_XDECREF(old);
  return true;
}

bool Operations::delete_cell(Activation& a, PyObject* cell, int index) {
  PyObject* old = PyCell_GET(cell);
  if (old == nullptr) {
    raise_unbound(a.code, index);
    return false;
  }
  PyCell_SET(cell, nullptr);
  Py_DECREF(old);
  return true;
}

PyObject* Operations::load_class_cell(Activation& a, PyObject* cell, int index) {
  PyObject* value = look_up(a.frame->f_locals, local_name_at(a.code, index));
  if (value != nullptr || PyErr_Occurred() != nullptr) return value;
  return load_cell(a, cell, index);
}

PyObject* Operations::make_cell(Activation& /*a*/, Operand value) {
  return PyCell_New(value.object);
}

void Operations::copied_free_variables(Activation& /*a*/, PyObject* /*function*/) {}
void Operations::loaded_constant(Activation& /*a*/, PyObject* /*constant*/) {}

PyObject* Operations::load_build_class(Activation& a) {
  static PyObject* const name = PyUnicode_InternFromString("__build_class__");
  PyObject* value = look_up(a.frame->f_builtins, name);
  if (value == nullptr && PyErr_Occurred() == nullptr) {
    PyErr_SetString(PyExc_NameError, "__build_class__ not found");
  }
  return value;
}

PyObject* Operations::import_name(Activation& a, PyObject* name, Operand from_list, Operand level) {
  static PyObject* const import = PyUnicode_InternFromString("__import__");
  const Reference function =
      Reference::borrow(PyDict_GetItemWithError(a.frame->f_builtins, import));
  if (!function) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_ImportError, "__import__ not found");
    return nullptr;
  }
  PyObject* locals = a.frame->f_locals;
  const std::array<PyObject*, 5> arguments = {name, a.frame->f_globals,
                                              locals != nullptr ? locals : Py_None,
                                              from_list.object, level.object};
  return PyObject_Vectorcall(function.get(), arguments.data(), arguments.size(), nullptr);
}

PyObject* Operations::import_from(Activation& /*a*/, Operand module, PyObject* name) {
  PyObject* value = nullptr;
  if (_PyObject_LookupAttr(module.object, name, &value) != 0) return value;
  // A circular relative import has put the submodule into sys.modules before it is an attribute.
  Reference package = Reference::steal(PyObject_GetAttrString(module.object, "__name__"));
  if (package && PyUnicode_Check(package.get())) {
    const Reference full_name =
        Reference::steal(PyUnicode_FromFormat("%U.%U", package.get(), name));
    if (!full_name) return nullptr;
    value = PyImport_GetModule(full_name.get());
    if (value != nullptr || PyErr_Occurred() != nullptr) return value;
  } else {
    package = Reference();
  }
  raise_cannot_import(module.object, package.get(), name);
  return nullptr;
}

}  // namespace assay::capture
