// Building containers and taking them apart.
#include "capture/errors.h"
#include "capture/operations.h"
#include "capture/reference.h"

namespace assay::capture {

namespace {

PyObject* dict_from(PyObject* const* keys, PyObject* const* values, std::size_t stride,
                    std::size_t count) {
  Reference dict = Reference::steal(_PyDict_NewPresized(static_cast<Py_ssize_t>(count)));
  if (!dict) return nullptr;
  for (std::size_t i = 0; i < count * stride; i += stride) {
    if (PyDict_SetItem(dict.get(), keys[i], values[i]) != 0) return nullptr;
  }
  return dict.release();
}

bool cannot_unpack(int expected, bool at_least, Py_ssize_t got) {
  PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %s%d, got %zd)",
               at_least ? "at least " : "", expected, got);
  return false;
}

// Writes the first `count` items to out[0], out[-1], ...; on failure releases those it wrote.
bool unpack_first(PyObject* iterator, int count, int after, PyObject** out) {
  for (int i = 0; i < count; ++i) {
    out[-i] = PyIter_Next(iterator);
    if (out[-i] != nullptr) continue;
    if (PyErr_Occurred() == nullptr) {
      cannot_unpack(after < 0 ? count : count + after, after >= 0, i);
    }
    for (int j = i; j-- > 0;) Py_DECREF(out[-j]);
    return false;
  }
  return true;
}

bool expect_end(PyObject* iterator, int count) {
  const Reference more = Reference::steal(PyIter_Next(iterator));
  if (more) PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", count);
  return PyErr_Occurred() == nullptr;
}

// Writes the list of the remaining items to out[0], and the last `after` of them to out[-1], ...
bool unpack_rest(PyObject* iterator, int before, int after, PyObject** out) {
  Reference list = Reference::steal(PySequence_List(iterator));
  if (!list) return false;
  const Py_ssize_t size = PyList_GET_SIZE(list.get());
  if (size < after) return cannot_unpack(before + after, true, before + size);
  for (int i = 0; i < after; ++i) {
    out[-1 - i] = Py_NewRef(PyList_GET_ITEM(list.get(), size - after + i));
  }
  if (PyList_SetSlice(list.get(), size - after, size, nullptr) != 0) {
    for (int i = 0; i < after; ++i) Py_DECREF(out[-1 - i]);
    return false;
  }
  out[0] = list.release();
  return true;
}

}  // namespace

PyObject* Operations::build_tuple(Activation& /*a*/, PyObject* const* items,
                                  Source* const* /*origins*/, std::size_t count) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
  if (tuple == nullptr) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(items[i]));
  }
  return tuple;
}

PyObject* Operations::build_list(Activation& /*a*/, PyObject* const* items,
                                 Source* const* /*origins*/, std::size_t count) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(count));
  if (list == nullptr) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), Py_NewRef(items[i]));
  }
  return list;
}

PyObject* Operations::build_set(Activation& /*a*/, PyObject* const* items,
                                Source* const* /*origins*/, std::size_t count) {
  Reference set = Reference::steal(PySet_New(nullptr));
  if (!set) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (PySet_Add(set.get(), items[i]) != 0) return nullptr;
  }
  return set.release();
}

PyObject* Operations::build_map(Activation& /*a*/, PyObject* const* items,
                                Source* const* /*origins*/, std::size_t pairs) {
  return dict_from(items, items + 1, 2, pairs);
}

PyObject* Operations::build_const_key_map(Activation& /*a*/, PyObject* keys,
                                          PyObject* const* values, Source* const* /*origins*/) {
  return dict_from(PySequence_Fast_ITEMS(keys), values, 1,
                   static_cast<std::size_t>(PyTuple_GET_SIZE(keys)));
}

PyObject* Operations::build_string(Activation& /*a*/, PyObject* const* items,
                                   Source* const* /*origins*/, std::size_t count) {
  static PyObject* const nothing = PyUnicode_InternFromString("");
  return _PyUnicode_JoinArray(nothing, items, static_cast<Py_ssize_t>(count));
}

PyObject* Operations::build_slice(Activation& /*a*/, Operand start, Operand stop, Operand step) {
  return PySlice_New(start.object, stop.object, step.object);
}

PyObject* Operations::format_value(Activation& /*a*/, Operand value, int conversion, Operand spec) {
  Reference converted;
  switch (conversion) {
    case 0:
      converted = Reference::borrow(value.object);
      break;
    case 1:
      converted = Reference::steal(PyObject_Str(value.object));
      break;
    case 2:
      converted = Reference::steal(PyObject_Repr(value.object));
      break;
    default:
      converted = Reference::steal(PyObject_ASCII(value.object));
      break;
  }
  if (!converted) return nullptr;
  if (spec.object == nullptr && PyUnicode_CheckExact(converted.get())) return converted.release();
  return PyObject_Format(converted.get(), spec.object);
}

bool Operations::list_append(Activation& /*a*/, PyObject* list, Operand item) {
  return PyList_Append(list, item.object) == 0;
}

bool Operations::list_extend(Activation& /*a*/, PyObject* list, Operand iterable) {
  if (Reference::steal(_PyList_Extend(reinterpret_cast<PyListObject*>(list), iterable.object))) {
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_TypeError) != 0 &&
      Py_TYPE(iterable.object)->tp_iter == nullptr && PySequence_Check(iterable.object) == 0) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "Value after * must be an iterable, not %.200s",
                 Py_TYPE(iterable.object)->tp_name);
  }
  return false;
}

PyObject* Operations::list_to_tuple(Activation& /*a*/, PyObject* list) {
  return PyList_AsTuple(list);
}

bool Operations::set_add(Activation& /*a*/, PyObject* set, Operand item) {
  return PySet_Add(set, item.object) == 0;
}

bool Operations::set_update(Activation& /*a*/, PyObject* set, Operand iterable) {
  return _PySet_Update(set, iterable.object) >= 0;
}

bool Operations::map_add(Activation& /*a*/, PyObject* dict, Operand key, Operand value) {
  return PyDict_SetItem(dict, key.object, value.object) == 0;
}

bool Operations::dict_update(Activation& /*a*/, PyObject* dict, Operand other) {
  if (PyDict_Update(dict, other.object) == 0) return true;
  if (PyErr_ExceptionMatches(PyExc_AttributeError) != 0) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping",
                 Py_TYPE(other.object)->tp_name);
  }
  return false;
}

bool Operations::dict_merge(Activation& /*a*/, PyObject* dict, Operand other, PyObject* function) {
  if (_PyDict_MergeEx(dict, other.object, 2) == 0) return true;
  reword_kwargs_error(function, other.object);
  return false;
}

bool Operations::unpack(Activation& /*a*/, Operand iterable, int before, int after,
                        PyObject** out) {
  const Reference iterator = Reference::steal(PyObject_GetIter(iterable.object));
  if (!iterator) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) != 0 &&
        Py_TYPE(iterable.object)->tp_iter == nullptr && PySequence_Check(iterable.object) == 0) {
      PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object",
                   Py_TYPE(iterable.object)->tp_name);
    }
    return false;
  }
  PyObject** first = out + before - 1 + (after >= 0 ? after + 1 : 0);
  if (!unpack_first(iterator.get(), before, after, first)) return false;
  const bool complete = after < 0 ? expect_end(iterator.get(), before)
                                  : unpack_rest(iterator.get(), before, after, first - before);
  if (!complete) {
    for (int i = before; i-- > 0;) Py_DECREF(first[-i]);
  }
  return complete;
}

}  // namespace assay::capture
