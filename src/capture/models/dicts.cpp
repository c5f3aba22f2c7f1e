// Methods of dict and OrderedDict, their constructors, and merging of mappings.
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/dict_order.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

PyObject* plainly_called(Recorder& recorder, Activation& a, const Call& call, const char* what) {
  return recorder.call_plainly(a, call, what);
}

// The keys() of a mapping that is not a dict; null without an exception if it has none.
Ref keys_of(Recorder& recorder, Activation& a, PyObject* mapping) {
  static PyObject* const name = PyUnicode_InternFromString("keys");
  const Ref method = Ref::steal(recorder.is_recording() ? recorder.get_attribute(a, mapping, name)
                                                        : PyObject_GetAttr(mapping, name));
  if (!method) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) != 0) PyErr_Clear();
    return {};
  }
  PyObject* no_args[] = {nullptr};
  return Ref::steal(recorder.call_object(a, {method.get(), no_args + 1, 0, nullptr}));
}

bool store(Recorder& recorder, Activation& a, PyObject* dict, PyObject* key, PyObject* value) {
  return recorder.store_item(a, {dict, nullptr}, {key, nullptr}, {value, nullptr});
}

// Pair by pair: what the iterator calls back may look at the dict.
bool store_pairs(Recorder& recorder, Activation& a, PyObject* dict, PyObject* iterable) {
  const Ref iterator = Ref::steal(recorder.get_iter(a, {iterable, nullptr}));
  if (!iterator) return false;
  for (Py_ssize_t count = 1;; ++count) {
    const Ref given = Ref::steal(recorder.next(a, {iterator.get(), nullptr}));
    if (!given) return PyErr_Occurred() == nullptr;
    const bool may_be_pair = PyObject_HasAttrString(given.get(), "__iter__") != 0;
    const Ref pair = may_be_pair ? items_of(recorder, a, given.get()) : Ref();
    if (PyErr_Occurred() != nullptr) return false;
    if (!pair || PyList_GET_SIZE(pair.get()) != 2) {
      // Raises what tells the place of the pair.
      const Ref none = Ref::steal(PyTuple_Pack(2, Py_None, Py_None));
      const Ref pairs = Ref::steal(PyList_New(count));
      for (Py_ssize_t i = 0; i < count; ++i) {
        PyList_SET_ITEM(pairs.get(), i, Py_NewRef(i + 1 < count ? none.get() : given.get()));
      }
      const Ref other = Ref::steal(PyDict_New());
      return PyDict_MergeFromSeq2(other.get(), pairs.get(), 1) == 0;
    }
    if (!store(recorder, a, dict, PyList_GET_ITEM(pair.get(), 0), PyList_GET_ITEM(pair.get(), 1))) {
      return false;
    }
  }
}

}  // namespace

bool store_all(Recorder& recorder, Activation& a, PyObject* dict, PyObject* other) {
  if (PyDict_Check(other) && recorder.is_recording() && recorder.know_contents(other)) {
    const Ref ordered = copy_in_order(other);
    if (!ordered) return false;
    const Ref items = Ref::steal(PyDict_Items(ordered.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(items.get(), i);
      if (!store(recorder, a, dict, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1))) {
        return false;
      }
    }
    return true;
  }
  const Ref keys = keys_of(recorder, a, other);
  if (!keys) return PyErr_Occurred() == nullptr && store_pairs(recorder, a, dict, other);
  const Ref names = items_of(recorder, a, keys.get());
  if (!names) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(names.get(), i);
    const Ref value = Ref::steal(recorder.load_item(a, {other, nullptr}, {key, nullptr}));
    if (!value || !store(recorder, a, dict, key, value.get())) return false;
  }
  return true;
}

namespace {

PyObject* dict_get(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || call.count > 3 || call.names != nullptr || !recorder.touch(call.args[0])) {
    return plainly_called(recorder, a, call, "dict.get of an unknown object");
  }
  if (!recorder.prepare_key(call.args[0], call.args[1])) {
    return plainly_called(recorder, a, call, "dict.get with an object as a key");
  }
  const KeyScope hashing(recorder, call.args[1]);
  PyObject* found = recorder.read_item(call.args[0], call.args[1]);
  if (found != nullptr) return Py_NewRef(found);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return Py_NewRef(call.count == 3 ? call.args[2] : Py_None);
}

PyObject* dict_view(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !recorder.know_contents(call.args[0])) {
    return plainly_called(recorder, a, call, "a dict whose contents are not known");
  }
  PyObject* view = recorder.call_watched(a, call);
  return view == nullptr ? nullptr : recorder.made(a, view, "a view of a dict");
}

// A dict or one of a subclass, whose own methods in Python dict's methods in C do not ask.
bool is_read_by_c(PyObject* object) {
  return is_builtin_dict(object) || (PyDict_Check(object) && !PyODict_Check(object));
}

// The same for those that are changed: the recorder changes them as their class says.
bool is_written_by_c(Recorder& recorder, PyObject* object) {
  return is_builtin_dict(object) ||
         (PyDict_Check(object) && !recorder.is_python_method(object, "__setitem__"));
}

PyObject* dict_pop(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || !is_read_by_c(call.args[0]) || !recorder.touch(call.args[0]) ||
      !recorder.prepare_key(call.args[0], call.args[1])) {
    return plainly_called(recorder, a, call, "dict.pop of an unknown object");
  }
  const KeyScope hashing(recorder, call.args[1]);
  PyObject* dict = call.args[0];
  PyObject* found = recorder.read_item(dict, call.args[1]);
  const Ref kept = Ref::borrow(found);
  if (found == nullptr) return recorder.call_watched(a, call);  // the default, or KeyError
  if (recorder.find(dict)->source == nullptr && !recorder.before_change(dict)) {
    return plainly_called(recorder, a, call, "dict.pop of an unknown object");
  }
  recorder.before_item_change(dict);
  PyObject* result = recorder.call_watched(a, call);
  if (result != nullptr && recorder.is_recording()) {
    recorder.changed_item(dict, call.args[1], nullptr);
  }
  return result;
}

PyObject* dict_setdefault(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || !is_written_by_c(recorder, call.args[0]) || !recorder.touch(call.args[0]) ||
      !recorder.prepare_key(call.args[0], call.args[1])) {
    return plainly_called(recorder, a, call, "dict.setdefault of an unknown object");
  }
  const KeyScope hashing(recorder, call.args[1]);
  PyObject* dict = call.args[0];
  PyObject* found = recorder.read_item(dict, call.args[1]);
  if (found != nullptr) return Py_NewRef(found);
  PyObject* value = call.count > 2 ? call.args[2] : Py_None;
  if (!recorder.store_item(a, {dict, nullptr}, {call.args[1], nullptr}, {value, nullptr})) {
    return nullptr;
  }
  return Py_NewRef(value);
}

PyObject* dict_update(Recorder& recorder, Activation& a, const Call& call) {
  const std::size_t positional = call.positional();
  if (positional < 1 || positional > 2 || !is_written_by_c(recorder, call.args[0]) ||
      !recorder.touch(call.args[0]) || (positional == 2 && !recorder.touch(call.args[1]))) {
    return plainly_called(recorder, a, call, "dict.update with an object that is not known");
  }
  PyObject* dict = call.args[0];
  if (positional == 2 && !store_all(recorder, a, dict, call.args[1])) return nullptr;
  for (std::size_t i = positional; i < call.count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional));
    if (!store(recorder, a, dict, key, call.args[i])) return nullptr;
  }
  return Py_NewRef(Py_None);
}

// The C methods behind dict's operators, as subclasses call them through super().
PyObject* dict_setitem(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 3 || !recorder.touch(call.args[0]) || !is_scalar(call.args[1]) ||
      !recorder.touch(call.args[2])) {
    return plainly_called(recorder, a, call, "dict.__setitem__ with an unknown object");
  }
  if (recorder.find(call.args[0])->source == nullptr && !recorder.before_change(call.args[0])) {
    return plainly_called(recorder, a, call, "dict.__setitem__ of an unknown object");
  }
  recorder.before_item_change(call.args[0]);
  PyObject* result = recorder.call_watched(a, call);
  if (result != nullptr && recorder.is_recording()) {
    recorder.changed_item(call.args[0], call.args[1], call.args[2]);
  }
  return result;
}

PyObject* dict_delitem(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.touch(call.args[0]) || !is_scalar(call.args[1])) {
    return plainly_called(recorder, a, call, "dict.__delitem__ of an unknown object");
  }
  PyObject* dict = call.args[0];
  recorder.read_item(dict, call.args[1]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (!recorder.is_recording()) return recorder.call_watched(a, call);
  if (recorder.find(dict)->source == nullptr && !recorder.before_change(dict)) {
    return plainly_called(recorder, a, call, "dict.__delitem__ of an unknown object");
  }
  recorder.before_item_change(dict);
  PyObject* result = recorder.call_watched(a, call);
  if (result != nullptr && recorder.is_recording()) {
    recorder.changed_item(dict, call.args[1], nullptr);
  }
  return result;
}

PyObject* dict_contains(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.touch(call.args[0]) || !is_scalar(call.args[1])) {
    return plainly_called(recorder, a, call, "dict.__contains__ of an unknown object");
  }
  const bool is_there = recorder.read_item(call.args[0], call.args[1]) != nullptr;
  return Py_NewRef(is_there ? Py_True : Py_False);
}

PyObject* dict_getitem(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.touch(call.args[0]) || !is_scalar(call.args[1])) {
    return plainly_called(recorder, a, call, "dict.__getitem__ of an unknown object");
  }
  if (is_builtin_dict(call.args[0])) {  // a defaultdict makes what is missing
    return recorder.load_item(a, {call.args[0], nullptr}, {call.args[1], nullptr});
  }
  PyObject* found = recorder.read_item(call.args[0], call.args[1]);
  if (found != nullptr) return Py_NewRef(found);
  static PyObject* const missing = PyUnicode_InternFromString("__missing__");
  if (recorder.is_python_method(call.args[0], "__missing__")) {
    return recorder.call_method(a, call.args[0], "__missing__", {call.args[1]});
  }
  if (recorder.lookup_on_type(Py_TYPE(call.args[0]), missing) != nullptr) {
    return plainly_called(recorder, a, call, "a missing key of a dict");
  }
  return recorder.call_watched(a, call);  // KeyError
}

PyObject* make_dict(Recorder& recorder, Activation& a, const Call& call) {
  const std::size_t positional = call.positional();
  if (positional > 1) return recorder.call_watched(a, call);  // raises
  PyObject* no_args[] = {nullptr};
  Ref dict = Ref::steal(recorder.made(
      a, recorder.call_watched(a, {call.callable, no_args + 1, 0, nullptr}), "a dict"));
  if (!dict) return nullptr;
  if (positional == 1) {
    if (!recorder.touch(call.args[0])) {
      return recorder.call_plainly(a, call, "a dict of an object that is not known");
    }
    if (!store_all(recorder, a, dict.get(), call.args[0])) return nullptr;
  }
  for (std::size_t i = positional; i < call.count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional));
    if (!store(recorder, a, dict.get(), key, call.args[i])) return nullptr;
  }
  return dict.release();
}

// A class method: its class comes first. OrderedDict's knows its arguments by name, too.
PyObject* dict_fromkeys(Recorder& recorder, Activation& a, const Call& call) {
  PyObject* no_args[] = {nullptr};
  const bool is_of_dict =
      call.count > 0 && PyType_Check(call.args[0]) &&
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(call.args[0]), &PyDict_Type) != 0;
  const bool has_known_names =
      call.names == nullptr ||
      (call.count == 3 && call.positional() == 2 &&
       PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.names, 0), "value") == 0 &&
       PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(call.args[0]), &PyODict_Type) != 0);
  if (call.count < 2 || call.count > 3 || !is_of_dict || !has_known_names) {
    return plainly_called(recorder, a, call, "dict.fromkeys with arguments not modelled");
  }
  const Ref keys = items_of(recorder, a, call.args[1]);
  Ref dict =
      keys ? Ref::steal(recorder.call_object(a, {call.args[0], no_args + 1, 0, nullptr})) : Ref();
  if (!dict) return nullptr;
  PyObject* value = call.count == 3 ? call.args[2] : Py_None;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    if (!store(recorder, a, dict.get(), PyList_GET_ITEM(keys.get(), i), value)) return nullptr;
  }
  return dict.release();
}

// dict.keys().isdisjoint(other)
PyObject* keys_are_disjoint(Recorder& recorder, Activation& a, const Call& call) {
  PyObject* dict = call.count == 2 ? dict_of_view(call.args[0]) : nullptr;
  if (dict == nullptr || !recorder.know_contents(dict) || !recorder.know_contents(call.args[1])) {
    return plainly_called(recorder, a, call, "keys of a dict that is not known");
  }
  recorder.use_items_as_keys(dict);
  recorder.use_items_as_keys(call.args[1]);
  return recorder.call_watched(a, call);
}

}  // namespace

ModelTable dict_models() {
  return {
      {"builtins.dict", make_dict},
      {"collections.OrderedDict", make_dict},
      {"builtins.dict.get", dict_get},
      {"builtins.dict.items", dict_view},
      {"builtins.dict.keys", dict_view},
      {"builtins.dict.values", dict_view},
      {"builtins.dict.pop", dict_pop},
      {"builtins.dict.setdefault", dict_setdefault},
      {"builtins.dict.update", dict_update},
      {"builtins.dict.copy", reads_contents},
      {"builtins.dict.clear", changes_contents},
      {"builtins.dict.popitem", changes_contents},
      {"builtins.dict.__setitem__", dict_setitem},
      {"builtins.dict.__delitem__", dict_delitem},
      {"builtins.dict.fromkeys", dict_fromkeys},
      {"builtins.dict.__contains__", dict_contains},
      {"builtins.dict.__getitem__", dict_getitem},
      {"builtins.dict.__len__", reads_contents},
      {"collections.OrderedDict.__setitem__", dict_setitem},
      {"collections.OrderedDict.__delitem__", dict_delitem},
      {"collections.OrderedDict.items", dict_view},
      {"collections.OrderedDict.keys", dict_view},
      {"collections.OrderedDict.values", dict_view},
      {"collections.OrderedDict.move_to_end", changes_contents},
      {"collections.OrderedDict.pop", dict_pop},
      {"collections.OrderedDict.popitem", changes_contents},
      {"collections.OrderedDict.update", dict_update},
      {"collections.OrderedDict.setdefault", dict_setdefault},
      {"collections.OrderedDict.clear", changes_contents},
      {"collections.OrderedDict.copy", reads_contents},
      {"collections.OrderedDict.fromkeys", dict_fromkeys},
      {"_collections_abc.dict_keys.isdisjoint", keys_are_disjoint},
  };
}

}  // namespace assay::capture
