// Attributes that the program sets: of objects, in slots, of classes.
#include <algorithm>
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

bool Recorder::store_attr(Activation& a, Operand owner, PyObject* name, Operand value) {
  if (!is_recording()) return Operations::store_attr(a, owner, name, value);
  read(owner);
  read(value);
  return set_attribute(a, owner.object, name, value.object);
}

bool Recorder::delete_attr(Activation& a, Operand owner, PyObject* name) {
  if (!is_recording()) return Operations::delete_attr(a, owner, name);
  read(owner);
  return set_attribute(a, owner.object, name, nullptr);
}

bool Recorder::set_attribute(Activation& a, PyObject* object, PyObject* name, PyObject* value) {
  static PyObject* const setattr = PyUnicode_InternFromString("__setattr__");
  static PyObject* const delattr = PyUnicode_InternFromString("__delattr__");
  const auto plainly = [&](const std::string& why) {
    if (!stop(a, why)) return false;
    return PyObject_SetAttr(object, name, value) == 0;
  };
  if (!touch(object)) return plainly("an attribute of an object that is not known is set");
  PyTypeObject* type = Py_TYPE(object);
  if (is_scalar(object)) return PyObject_SetAttr(object, name, value) == 0;  // raises
  if (PyType_Check(object) || PyModule_Check(object) || is_tensor(object)) {
    return set_special_attribute(*this, a, object, name, value);
  }
  if (value != nullptr && !touch(value)) return plainly("an unknown object is stored");
  if (type->tp_setattro != PyObject_GenericSetAttr) {
    PyObject* custom = lookup_on_type(type, value == nullptr ? delattr : setattr);
    if (custom != nullptr && PyFunction_Check(custom)) {
      is_constant(custom);
      PyObject* args[] = {nullptr, object, name, value};
      PyObject* result = call_object(a, {custom, args + 1, value == nullptr ? 2U : 3U, nullptr});
      Py_XDECREF(result);
      return result != nullptr;
    }
  }
  return set_plain_attribute(*this, a, object, name, value);
}

bool Recorder::write_member(Activation& a, PyObject* object, PyObject* descriptor, PyObject* name,
                            PyObject* value) {
  if (tracked_.find(object)->source == nullptr && has_object_layout(Py_TYPE(object))) {
    save_for_rollback(object);
    return PyObject_GenericSetAttr(object, name, value) == 0;
  }
  if (tracked_.find(object)->source == nullptr || value == nullptr) {
    if (!stop(a, "a slot of an object is set")) return false;
    return PyObject_GenericSetAttr(object, name, value) == 0;
  }
  known_members_.push_back({object, descriptor});
  tracked_.find(object)->is_mutated = true;
  if (PyObject_GenericSetAttr(object, name, value) < 0) return false;
  is_constant(descriptor);
  effects_.push_back(
      {Effect::Kind::set_member, Ref::borrow(object), Ref::borrow(descriptor), Ref::borrow(value)});
  return true;
}

// ---- Classes ----

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
