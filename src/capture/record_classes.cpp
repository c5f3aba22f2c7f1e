// Attributes of classes that the program sets.
#include <algorithm>

#include "capture/recorder.h"

namespace assay::capture {

bool Recorder::can_write_to_class(PyObject* type, PyObject* name) {
  static PyObject* const setattr = PyUnicode_InternFromString("__setattr__");
  static PyObject* const subclasses = PyUnicode_InternFromString("__subclasses__");
  auto* written = reinterpret_cast<PyTypeObject*>(type);
  PyTypeObject* meta = Py_TYPE(type);
  const bool is_special = PyUnicode_Tailmatch(name, Ref::steal(PyUnicode_FromString("__")).get(), 0,
                                              PY_SSIZE_T_MAX, -1) == 1;
  if (is_special || (written->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0 ||
      (written->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || lookup_on_type(meta, name) != nullptr ||
      lookup_on_type(meta, setattr) != _PyType_Lookup(&PyType_Type, setattr)) {
    return false;
  }
  // What a subclass finds under the name would depend on the classes in between.
  const Ref found = Ref::steal(PyObject_CallMethodNoArgs(type, subclasses));
  PyErr_Clear();
  return found && PyList_CheckExact(found.get()) && PyList_GET_SIZE(found.get()) == 0;
}

bool Recorder::write_to_class(PyObject* type, PyObject* name, PyObject* value) {
  if (value == nullptr) lookup_on_type(reinterpret_cast<PyTypeObject*>(type), name);
  is_constant(type);
  if (PyObject_SetAttr(type, name, value) < 0) return false;
  writes_to_classes_ = true;
  effects_.push_back(
      {Effect::Kind::set_attribute, Ref::borrow(type), Ref::borrow(name), Ref::borrow(value)});
  return true;
}

bool Recorder::was_written_to(PyTypeObject* type, PyObject* name) const {
  return writes_to_classes_ && std::ranges::any_of(effects_, [&](const RecordedEffect& effect) {
    return effect.kind == Effect::Kind::set_attribute &&
           effect.target.get() == reinterpret_cast<PyObject*>(type) &&
           PyUnicode_Compare(effect.key.get(), name) == 0;
  });
}

}  // namespace assay::capture
