// Methods of list, dict, set and tuple, and the constructors.
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/dict_order.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

PyObject* none() { return Py_NewRef(Py_None); }

PyObject* plainly(Recorder& recorder, Activation& a, const Call& call, const char* what) {
  return recorder.call_plainly(a, call, what);
}

// ---- list ----

PyObject* list_append(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyList_CheckExact(call.args[0]) || !recorder.touch(call.args[1])) {
    return plainly(recorder, a, call, "list.append of an unknown object");
  }
  return recorder.append(call.args[0], call.args[1]) ? none() : nullptr;
}

PyObject* list_extend(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyList_CheckExact(call.args[0]) || !recorder.touch(call.args[0])) {
    return plainly(recorder, a, call, "list.extend of an unknown object");
  }
  return recorder.list_extend(a, call.args[0], {call.args[1], nullptr}) ? none() : nullptr;
}

// Methods that change the contents and need to know them.
PyObject* changes_contents(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 1; i < call.count; ++i) {
    if (!recorder.touch(call.args[i])) {
      return plainly(recorder, a, call, "a container is changed with an unknown object");
    }
    PyObject* argument = call.args[i];
    const bool is_container = PyList_Check(argument) || PyDict_Check(argument) ||
                              PyAnySet_Check(argument) || PyTuple_Check(argument);
    if (is_container && !recorder.know_contents(argument)) {
      return plainly(recorder, a, call, "a container is changed with unknown contents");
    }
    if (PyIter_Check(argument) && !is_scalar(argument)) {
      return plainly(recorder, a, call, "a container is changed with an iterator's items");
    }
  }
  if (call.count == 0 || !recorder.before_change(call.args[0])) {
    return plainly(recorder, a, call, "a container is changed whose contents are not known");
  }
  PyObject* container = call.args[0];
  const Ref kept = Ref::borrow(container);
  PyObject* result = recorder.call_watched(a, call);
  if (recorder.is_recording() && PySet_Check(container)) {
    if (result != nullptr) recorder.called_method(call);
  } else if (recorder.is_recording()) {
    recorder.changed_contents(container);
  }
  return result == nullptr ? nullptr : recorder.made(a, result, "a method");
}

// set.update and its like with iterators: of their items.
PyObject* changes_set(Recorder& recorder, Activation& a, const Call& call) {
  std::vector<Ref> kept;
  std::vector<PyObject*> args = {nullptr};
  for (std::size_t i = 0; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    if (i > 0 && !is_scalar(argument) && PyIter_Check(argument)) {
      kept.push_back(Ref::steal(recorder.build_list(a, nullptr, nullptr, 0)));
      if (!recorder.list_extend(a, kept.back().get(), {argument, nullptr})) return nullptr;
      argument = kept.back().get();
    }
    args.push_back(argument);
  }
  const Call with_items{call.callable, args.data() + 1, call.count, call.names};
  if (!recorder.is_recording()) return recorder.call_object(a, with_items);
  return changes_contents(recorder, a, with_items);
}

PyObject* set_add(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !is_plain_tensor(call.args[1])) return changes_contents(recorder, a, call);
  const SuspendScope suspended(recorder);  // Tensor.__hash__ is by identity
  return changes_contents(recorder, a, call);
}

// Methods that only read the contents.
PyObject* reads_contents(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    const bool is_known = i == 0 || PyList_Check(argument) || PyDict_Check(argument) ||
                                  PyAnySet_Check(argument) || PyTuple_Check(argument)
                              ? recorder.know_contents(argument)
                              : recorder.touch(argument) && !is_tensor(argument);
    if (!is_known) return plainly(recorder, a, call, "a container whose contents are not known");
  }
  return recorder.made(a, recorder.call_watched(a, call), "a method");
}

// index, count, remove and `in`: the items are compared with the argument.
template <PyObject* (*model)(Recorder&, Activation&, const Call&)>
PyObject* compares_items(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || !recorder.know_contents(call.args[0])) {
    return plainly(recorder, a, call, "a list whose contents are not known");
  }
  PyObject* list = call.args[0];
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    if (!recorder.know_comparable(call.args[1], PyList_GET_ITEM(list, i))) {
      return plainly(recorder, a, call, "items of a list are compared by values");
    }
  }
  return model(recorder, a, call);
}

// ---- dict ----

PyObject* dict_get(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || call.count > 3 || call.names != nullptr || !recorder.touch(call.args[0])) {
    return plainly(recorder, a, call, "dict.get of an unknown object");
  }
  if (!is_scalar(call.args[1]) && !recorder.know_all(call.args[1])) {
    return plainly(recorder, a, call, "dict.get with an object as a key");
  }
  PyObject* found = recorder.read_item(call.args[0], call.args[1]);
  if (found != nullptr) return Py_NewRef(found);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return Py_NewRef(call.count == 3 ? call.args[2] : Py_None);
}

PyObject* dict_view(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !recorder.know_contents(call.args[0])) {
    return plainly(recorder, a, call, "a dict whose contents are not known");
  }
  PyObject* view = recorder.call_watched(a, call);
  return view == nullptr ? nullptr : recorder.made(a, view, "a view of a dict");
}

PyObject* dict_pop(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || !is_builtin_dict(call.args[0]) || !is_scalar(call.args[1]) ||
      !recorder.touch(call.args[0])) {
    return plainly(recorder, a, call, "dict.pop of an unknown object");
  }
  PyObject* dict = call.args[0];
  PyObject* found = recorder.read_item(dict, call.args[1]);
  const Ref kept = Ref::borrow(found);
  if (found == nullptr) return recorder.call_watched(a, call);  // the default, or KeyError
  if (recorder.find(dict)->source == nullptr && !recorder.before_change(dict)) return nullptr;
  recorder.before_item_change(dict);
  PyObject* result = recorder.call_watched(a, call);
  if (result != nullptr && recorder.is_recording()) {
    recorder.changed_item(dict, call.args[1], nullptr);
  }
  return result;
}

PyObject* dict_setdefault(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || !is_builtin_dict(call.args[0]) || !is_scalar(call.args[1]) ||
      !recorder.touch(call.args[0])) {
    return plainly(recorder, a, call, "dict.setdefault of an unknown object");
  }
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
  if (positional < 1 || positional > 2 || !is_builtin_dict(call.args[0]) ||
      !recorder.touch(call.args[0]) ||
      (positional == 2 && !(PyDict_Check(call.args[1]) && recorder.know_contents(call.args[1])))) {
    return plainly(recorder, a, call, "dict.update with an object that is not a known dict");
  }
  PyObject* dict = call.args[0];
  const auto store = [&](PyObject* key, PyObject* value) {
    return recorder.store_item(a, {dict, nullptr}, {key, nullptr}, {value, nullptr});
  };
  if (positional == 2) {
    const Ref ordered = copy_in_order(call.args[1]);
    if (!ordered) return nullptr;
    const Ref items = Ref::steal(PyDict_Items(ordered.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* pair = PyList_GET_ITEM(items.get(), i);
      if (!store(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1))) return nullptr;
    }
  }
  for (std::size_t i = positional; i < call.count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional));
    if (!store(key, call.args[i])) return nullptr;
  }
  return none();
}

// The C methods behind dict's operators, as subclasses call them through super().
PyObject* dict_setitem(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 3 || !recorder.touch(call.args[0]) || !is_scalar(call.args[1]) ||
      !recorder.touch(call.args[2])) {
    return plainly(recorder, a, call, "dict.__setitem__ with an unknown object");
  }
  if (recorder.find(call.args[0])->source == nullptr && !recorder.before_change(call.args[0])) {
    return nullptr;
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
    return plainly(recorder, a, call, "dict.__delitem__ of an unknown object");
  }
  PyObject* dict = call.args[0];
  recorder.read_item(dict, call.args[1]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (!recorder.is_recording()) return recorder.call_watched(a, call);
  if (recorder.find(dict)->source == nullptr && !recorder.before_change(dict)) return nullptr;
  recorder.before_item_change(dict);
  PyObject* result = recorder.call_watched(a, call);
  if (result != nullptr && recorder.is_recording()) {
    recorder.changed_item(dict, call.args[1], nullptr);
  }
  return result;
}

PyObject* dict_contains(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.touch(call.args[0]) || !is_scalar(call.args[1])) {
    return plainly(recorder, a, call, "dict.__contains__ of an unknown object");
  }
  const bool is_there = recorder.read_item(call.args[0], call.args[1]) != nullptr;
  return Py_NewRef(is_there ? Py_True : Py_False);
}

PyObject* dict_getitem(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.touch(call.args[0]) || !is_scalar(call.args[1])) {
    return plainly(recorder, a, call, "dict.__getitem__ of an unknown object");
  }
  PyObject* found = recorder.read_item(call.args[0], call.args[1]);
  return found != nullptr ? Py_NewRef(found) : recorder.call_watched(a, call);
}

// ---- Constructors ----

PyObject* make_list(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count > 1 || call.names != nullptr) return recorder.call_watched(a, call);  // raises
  PyObject* list = recorder.build_list(a, nullptr, nullptr, 0);
  if (list == nullptr || call.count == 0) return list;
  if (!recorder.list_extend(a, list, {call.args[0], nullptr})) {
    Py_DECREF(list);
    return nullptr;
  }
  return list;
}

PyObject* make_tuple(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 1 && PyTuple_CheckExact(call.args[0])) return Py_NewRef(call.args[0]);
  const Ref list = Ref::steal(make_list(recorder, a, call));
  if (!list || !PyList_Check(list.get())) return nullptr;
  return recorder.list_to_tuple(a, list.get());
}

PyObject* make_set(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 0) return recorder.made(a, recorder.call_watched(a, call), "a set");
  const Ref list = Ref::steal(make_list(recorder, a, call));
  if (!list) return nullptr;
  PyObject* args[] = {nullptr, list.get()};
  return recorder.made(a, recorder.call_watched(a, {call.callable, args + 1, 1, nullptr}), "a set");
}

PyObject* make_dict(Recorder& recorder, Activation& a, const Call& call) {
  const std::size_t positional = call.positional();
  if (positional > 1) return recorder.call_watched(a, call);  // raises
  std::vector<PyObject*> args = {nullptr};
  Ref pairs;
  if (positional == 1) {
    if (PyDict_Check(call.args[0])) {
      if (!recorder.know_contents(call.args[0])) {
        return recorder.call_plainly(a, call, "a dict whose contents are not known");
      }
      args.push_back(call.args[0]);
    } else {
      // Pairs, from any iterable.
      PyObject* list_args[] = {nullptr, call.args[0]};
      pairs = Ref::steal(make_list(recorder, a, {nullptr, list_args + 1, 1, nullptr}));
      if (!pairs) return nullptr;
      for (Py_ssize_t i = 0; recorder.is_recording() && i < PyList_GET_SIZE(pairs.get()); ++i) {
        recorder.know_contents(PyList_GET_ITEM(pairs.get(), i));
      }
      args.push_back(pairs.get());
    }
  }
  args.insert(args.end(), call.args + positional, call.args + call.count);
  return recorder.made(
      a, recorder.call_watched(a, {call.callable, args.data() + 1, args.size() - 1, call.names}),
      "a dict");
}

// A class method: its class comes first.
PyObject* dict_fromkeys(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || call.count > 3 || call.names != nullptr ||
      call.args[0] != reinterpret_cast<PyObject*>(&PyDict_Type)) {
    return plainly(recorder, a, call, "dict.fromkeys of a subclass");
  }
  const Ref keys = Ref::steal(make_list(recorder, a, {call.callable, call.args + 1, 1, nullptr}));
  Ref dict = keys ? Ref::steal(recorder.build_map(a, nullptr, nullptr, 0)) : Ref();
  if (!dict) return nullptr;
  PyObject* value = call.count == 3 ? call.args[2] : Py_None;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    if (!recorder.store_item(a, {dict.get(), nullptr}, {PyList_GET_ITEM(keys.get(), i), nullptr},
                             {value, nullptr})) {
      return nullptr;
    }
  }
  return dict.release();
}

}  // namespace

ModelTable container_models() {
  return {
      {"builtins.list", make_list},
      {"builtins.tuple", make_tuple},
      {"builtins.set", make_set},
      {"builtins.frozenset", make_set},
      {"builtins.dict", make_dict},
      {"collections.OrderedDict", make_dict},
      {"builtins.list.append", list_append},
      {"builtins.list.extend", list_extend},
      {"builtins.list.insert", changes_contents},
      {"builtins.list.pop", changes_contents},
      {"builtins.list.remove", compares_items<changes_contents>},
      {"builtins.list.clear", changes_contents},
      {"builtins.list.reverse", changes_contents},
      {"builtins.list.copy", reads_contents},
      {"builtins.list.index", compares_items<reads_contents>},
      {"builtins.list.count", compares_items<reads_contents>},
      {"builtins.list.__len__", reads_contents},
      {"builtins.list.__contains__", compares_items<reads_contents>},
      {"builtins.list.__getitem__", reads_contents},
      {"builtins.tuple.__getitem__", reads_contents},
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
      {"builtins.set.add", set_add},
      {"builtins.set.discard", changes_contents},
      {"builtins.set.remove", changes_contents},
      {"builtins.set.update", changes_set},
      {"builtins.set.intersection_update", changes_set},
      {"builtins.set.difference_update", changes_set},
      {"builtins.set.symmetric_difference_update", changes_set},
      {"builtins.set.clear", changes_contents},
      {"builtins.set.union", reads_contents},
      {"builtins.set.intersection", reads_contents},
      {"builtins.set.difference", reads_contents},
      {"builtins.set.symmetric_difference", reads_contents},
      {"builtins.set.issubset", reads_contents},
      {"builtins.set.issuperset", reads_contents},
      {"builtins.set.isdisjoint", reads_contents},
      {"builtins.set.copy", reads_contents},
      {"builtins.frozenset.union", reads_contents},
      {"builtins.frozenset.intersection", reads_contents},
  };
}

}  // namespace assay::capture
