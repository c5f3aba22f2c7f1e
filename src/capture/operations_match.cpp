// Pattern matching (PEP 634).
#include <array>

#include "capture/operations.h"
#include "capture/reference.h"

namespace assay::capture {

namespace {

// What one attempt to match has come to; `failed` means that an exception is set.
enum class Match { yes, no, failed };

// False, with an exception set, if it was seen before or cannot be hashed.
bool first_time(PyObject* seen, PyObject* key, PyObject* error, const char* message,
                const char* type) {
  const int known = PySet_Contains(seen, key);
  if (known == 0) return PySet_Add(seen, key) == 0;
  if (known > 0) {
    if (type != nullptr) {
      PyErr_Format(error, message, type, key);
    } else {
      PyErr_Format(error, message, key);
    }
  }
  return false;
}

Match match_attribute(PyObject* subject, PyTypeObject* type, PyObject* name, PyObject* seen,
                      PyObject* attributes) {
  if (!first_time(seen, name, PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R",
                  type->tp_name)) {
    return Match::failed;
  }
  const Reference value = Reference::steal(PyObject_GetAttr(subject, name));
  if (!value) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return Match::failed;
    PyErr_Clear();
    return Match::no;
  }
  return PyList_Append(attributes, value.get()) == 0 ? Match::yes : Match::failed;
}

// The names that positional patterns stand for; without __match_args__, some builtin types match
// themselves.
Reference match_args_of(PyTypeObject* type, bool& matches_self) {
  auto* object = reinterpret_cast<PyObject*>(type);
  Reference names = Reference::steal(PyObject_GetAttrString(object, "__match_args__"));
  if (!names) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return {};
    PyErr_Clear();
    matches_self = PyType_HasFeature(type, _Py_TPFLAGS_MATCH_SELF) != 0;
    return Reference::steal(PyTuple_New(0));
  }
  if (!PyTuple_CheckExact(names.get())) {
    PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", type->tp_name,
                 Py_TYPE(names.get())->tp_name);
    return {};
  }
  return names;
}

Match match_positional(PyObject* subject, PyTypeObject* type, int count, PyObject* seen,
                       PyObject* attributes) {
  bool matches_self = false;
  const Reference names = match_args_of(type, matches_self);
  if (!names) return Match::failed;
  const Py_ssize_t allowed = matches_self ? 1 : PyTuple_GET_SIZE(names.get());
  if (allowed < count) {
    PyErr_Format(PyExc_TypeError, "%s() accepts %d positional sub-pattern%s (%d given)",
                 type->tp_name, static_cast<int>(allowed), allowed == 1 ? "" : "s", count);
    return Match::failed;
  }
  if (matches_self) {
    return PyList_Append(attributes, subject) == 0 ? Match::yes : Match::failed;
  }
  for (int i = 0; i < count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names.get(), i);
    if (!PyUnicode_CheckExact(name)) {
      PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)",
                   Py_TYPE(name)->tp_name);
      return Match::failed;
    }
    const Match match = match_attribute(subject, type, name, seen, attributes);
    if (match != Match::yes) return match;
  }
  return Match::yes;
}

Match match_named(PyObject* subject, PyTypeObject* type, PyObject* names, PyObject* seen,
                  PyObject* attributes) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    const Match match =
        match_attribute(subject, type, PyTuple_GET_ITEM(names, i), seen, attributes);
    if (match != Match::yes) return match;
  }
  return Match::yes;
}

}  // namespace

PyObject* Operations::match_class(Activation& /*a*/, Operand subject, Operand type, int count,
                                  PyObject* names) {
  if (!PyType_Check(type.object)) {
    PyErr_SetString(PyExc_TypeError, "called match pattern must be a type");
    return nullptr;
  }
  const int is_instance = PyObject_IsInstance(subject.object, type.object);
  if (is_instance < 0) return nullptr;
  if (is_instance == 0) return Py_NewRef(Py_None);
  const Reference seen = Reference::steal(PySet_New(nullptr));
  const Reference attributes = Reference::steal(PyList_New(0));
  if (!seen || !attributes) return nullptr;
  auto* matched_type = reinterpret_cast<PyTypeObject*>(type.object);
  Match match = Match::yes;
  if (count > 0) {
    match = match_positional(subject.object, matched_type, count, seen.get(), attributes.get());
  }
  if (match == Match::yes) {
    match = match_named(subject.object, matched_type, names, seen.get(), attributes.get());
  }
  if (match == Match::failed) return nullptr;
  return match == Match::yes ? PyList_AsTuple(attributes.get()) : Py_NewRef(Py_None);
}

PyObject* Operations::match_keys(Activation& /*a*/, Operand subject, Operand keys) {
  static PyObject* const get_name = PyUnicode_InternFromString("get");
  const Py_ssize_t count = PyTuple_GET_SIZE(keys.object);
  if (count == 0) return PyTuple_New(0);
  // get() with a default of its own: a defaultdict must not make the key.
  PyObject* found = nullptr;
  const bool is_method = _PyObject_GetMethod(subject.object, get_name, &found) != 0;
  const Reference get = Reference::steal(found);
  if (!get) return nullptr;
  const Reference seen = Reference::steal(PySet_New(nullptr));
  const Reference missing =
      Reference::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
  Reference values = Reference::steal(PyTuple_New(count));
  if (!seen || !missing || !values) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys.object, i);
    if (!first_time(seen.get(), key, PyExc_ValueError, "mapping pattern checks duplicate key (%R)",
                    nullptr)) {
      return nullptr;
    }
    const std::array<PyObject*, 3> arguments = {subject.object, key, missing.get()};
    PyObject* value = is_method ? PyObject_Vectorcall(get.get(), arguments.data(), 3, nullptr)
                                : PyObject_Vectorcall(get.get(), arguments.data() + 1, 2, nullptr);
    if (value == nullptr) return nullptr;
    if (value == missing.get()) {
      Py_DECREF(value);
      return Py_NewRef(Py_None);
    }
    PyTuple_SET_ITEM(values.get(), i, value);
  }
  return values.release();
}

bool Operations::matches_kind(Activation& /*a*/, Operand subject, unsigned long type_flag) {
  return (Py_TYPE(subject.object)->tp_flags & type_flag) != 0;
}

PyObject* Operations::get_len(Activation& /*a*/, Operand value) {
  const Py_ssize_t length = PyObject_Length(value.object);
  return length < 0 ? nullptr : PyLong_FromSsize_t(length);
}

}  // namespace assay::capture
