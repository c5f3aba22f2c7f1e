/// \file One owned reference to a Python object. Every CPython reference that the capture room
/// keeps is one of these; the GIL must be held to copy or destroy it.
#pragma once

#include <Python.h>

#include <utility>

namespace assay::capture {

class Ref {
 public:
  Ref() = default;
  static Ref steal(PyObject* object) { return Ref(object); }
  static Ref borrow(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  template <typename Object>
  static Ref borrow(Object* object) {
    return borrow(reinterpret_cast<PyObject*>(object));
  }
  Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

/// A module, a new reference. Also from code whose builtins have no __import__, as namedtuple's.
inline PyObject* import_module(const char* name) {
  const Ref text = Ref::steal(PyUnicode_FromString(name));
  PyObject* found = text ? PyImport_GetModule(text.get()) : nullptr;
  if (found != nullptr || PyErr_Occurred() != nullptr) return found;
  return PyImport_ImportModule(name);
}

/// A function or type of the module builtins; borrowed.
inline PyObject* find_builtin(const char* name) {
  const Ref module = Ref::steal(import_module("builtins"));
  return module ? PyDict_GetItemString(PyModule_GetDict(module.get()), name) : nullptr;
}

}  // namespace assay::capture
