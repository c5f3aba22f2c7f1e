// Methods of list, set and tuple, and their constructors.
#include <string>
#include <vector>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/dict_order.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

PyObject* none() { return Py_NewRef(Py_None); }

PyObject* plainly(Recorder& recorder, Activation& a, const Call& call, const char* what) {
  return recorder.call_plainly(a, call, what);
}

// ---- list ----

PyObject* list_append(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyList_Check(call.args[0]) || !recorder.touch(call.args[1])) {
    return plainly(recorder, a, call, "list.append of an unknown object");
  }
  return recorder.append(call.args[0], call.args[1]) ? none() : nullptr;
}

PyObject* list_extend(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyList_Check(call.args[0]) || !recorder.touch(call.args[0])) {
    return plainly(recorder, a, call, "list.extend of an unknown object");
  }
  if (is_scalar(call.args[1]) && Py_TYPE(call.args[1])->tp_iter == nullptr) {
    return recorder.call_watched(a, call);  // raises
  }
  return recorder.list_extend(a, call.args[0], {call.args[1], nullptr}) ? none() : nullptr;
}

}  // namespace

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
    if (PyAnySet_Check(call.args[0])) {
      is_container ? recorder.use_items_as_keys(argument) : recorder.use_as_key(argument);
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

namespace {

PyObject* set_add(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !is_plain_tensor(call.args[1])) return changes_contents(recorder, a, call);
  const SuspendScope suspended(recorder);  // Tensor.__hash__ is by identity
  return changes_contents(recorder, a, call);
}

// set.intersection_update and its like with iterators: of their items.
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
    if (i > 0 && recorder.is_recording() && !recorder.know_given_items(argument)) {
      return plainly(recorder, a, call, "a set and an iterable that is not known");
    }
  }
  const Call with_items{call.callable, args.data() + 1, call.count, call.names};
  if (!recorder.is_recording()) return recorder.call_object(a, with_items);
  return changes_contents(recorder, a, with_items);
}

// An iterator's items are added one by one: what it calls back may look at the set.
PyObject* set_update(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const add = PyDict_GetItemString(PySet_Type.tp_dict, "add");
  if (call.count == 0 || call.names != nullptr) return recorder.call_watched(a, call);  // raises
  for (std::size_t i = 1; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    const bool is_iterator = !is_scalar(argument) && PyIter_Check(argument);
    PyObject* args[] = {nullptr, call.args[0], argument};
    while (is_iterator) {
      const Ref item = Ref::steal(recorder.next(a, {argument, nullptr}));
      if (!item) break;
      args[2] = item.get();
      const Ref added = Ref::steal(recorder.call_object(a, {add, args + 1, 2, nullptr}));
      if (!added) return nullptr;
    }
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (is_iterator) continue;
    const Call of_one{call.callable, args + 1, 2, nullptr};
    const Ref updated = Ref::steal(recorder.is_recording() ? changes_set(recorder, a, of_one)
                                                           : recorder.call_object(a, of_one));
    if (!updated) return nullptr;
  }
  return none();
}

// Which item goes depends on the order: of values alone it does not depend on where objects lie.
PyObject* set_pop(Recorder& recorder, Activation& a, const Call& call) {
  const Tracked* tracked = call.count == 1 ? recorder.find(call.args[0]) : nullptr;
  bool is_known = tracked != nullptr && tracked->source == nullptr && PySet_Check(call.args[0]);
  PyObject* item = nullptr;
  Py_ssize_t position = 0;
  Py_hash_t hash = 0;
  while (is_known && _PySet_NextEntry(call.args[0], &position, &item, &hash) != 0) {
    is_known = is_scalar(item);
  }
  if (!is_known) return plainly(recorder, a, call, "set.pop of a set from before or of objects");
  return changes_contents(recorder, a, call);
}

}  // namespace

PyObject* reads_contents(Recorder& recorder, Activation& a, const Call& call) {
  const bool is_of_set = call.count > 0 && PyAnySet_Check(call.args[0]);
  for (std::size_t i = 0; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    if (i > 0 && is_of_set && !recorder.know_given_items(argument)) {
      return plainly(recorder, a, call, "a set and an iterable that is not known");
    }
    const bool is_known = i == 0 || PyList_Check(argument) || PyDict_Check(argument) ||
                                  PyAnySet_Check(argument) || PyTuple_Check(argument)
                              ? recorder.know_contents(argument)
                              : recorder.touch(argument) && !is_tensor(argument);
    if (!is_known) return plainly(recorder, a, call, "a container whose contents are not known");
    if (PyAnySet_Check(call.args[0])) recorder.use_items_as_keys(argument);
  }
  return recorder.made(a, recorder.call_watched(a, call), "a method");
}

namespace {

PyObject* set_contains(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);  // raises
  if (!PyAnySet_CheckExact(call.args[0])) return computes(recorder, a, call);
  return recorder.contains(a, {call.args[1], nullptr}, {call.args[0], nullptr}, false);
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

// ---- Operators, called as methods ----

// A class in Python may have called the method of its base from its own.
bool is_builtin_container(PyObject* object) {
  return is_container(object) && (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
}

// Of operands with which the method does what the operator does: it would return NotImplemented for
// others.
template <int op>
PyObject* operates(Recorder& recorder, Activation& a, const Call& call) {
  const bool is_plain = call.count == 2 && is_builtin_container(call.args[0]) &&
                        (Py_TYPE(call.args[0]) == Py_TYPE(call.args[1]) ||
                         ((op == NB_MULTIPLY || op == NB_INPLACE_MULTIPLY) &&
                          PyLong_CheckExact(call.args[1]) && PySequence_Check(call.args[0])));
  const bool extends = op == NB_INPLACE_ADD && call.count == 2 && PyList_CheckExact(call.args[0]);
  if (!is_plain && !extends) {
    const bool may_change = op >= NB_INPLACE_ADD && call.count == 2 &&
                            (!PyAnySet_Check(call.args[0]) || PyAnySet_Check(call.args[1]));
    return may_change ? plainly(recorder, a, call, "an operator of a container, called by name")
                      : computes(recorder, a, call);
  }
  return recorder.binary(a, op, {call.args[0], nullptr}, {call.args[1], nullptr});
}

template <int op>
PyObject* compares(Recorder& recorder, Activation& a, const Call& call) {
  const bool is_plain = call.count == 2 && is_builtin_container(call.args[0]) &&
                        Py_TYPE(call.args[0]) == Py_TYPE(call.args[1]);
  if (!is_plain) return computes(recorder, a, call);
  return recorder.compare(a, op, {call.args[0], nullptr}, {call.args[1], nullptr});
}

PyObject* list_set_item(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 3 || !PyList_CheckExact(call.args[0])) {
    return plainly(recorder, a, call, "list.__setitem__ of another object");
  }
  const bool is_set = recorder.store_item(a, {call.args[0], nullptr}, {call.args[1], nullptr},
                                          {call.args[2], nullptr});
  return is_set ? none() : nullptr;
}

PyObject* list_delete_item(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyList_CheckExact(call.args[0])) {
    return plainly(recorder, a, call, "list.__delitem__ of another object");
  }
  return recorder.delete_item(a, {call.args[0], nullptr}, {call.args[1], nullptr}) ? none()
                                                                                   : nullptr;
}

// ---- Constructors ----

}  // namespace

PyObject* make_list(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count > 1 || call.names != nullptr) return recorder.call_watched(a, call);  // raises
  if (call.count == 1 && is_scalar(call.args[0]) && Py_TYPE(call.args[0])->tp_iter == nullptr) {
    return recorder.call_watched(a, call);  // raises
  }
  PyObject* list = recorder.build_list(a, nullptr, nullptr, 0);
  if (list == nullptr || call.count == 0) return list;
  if (!recorder.list_extend(a, list, {call.args[0], nullptr})) {
    Py_DECREF(list);
    return nullptr;
  }
  return list;
}

namespace {

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

}  // namespace

ModelTable container_models() {
  return {
      {"builtins.list", make_list},
      {"builtins.tuple", make_tuple},
      {"builtins.set", make_set},
      {"builtins.frozenset", make_set},
      {"builtins.list.append", list_append},
      {"builtins.list.__setitem__", list_set_item},
      {"builtins.list.__delitem__", list_delete_item},
      {"builtins.list.__eq__", compares<Py_EQ>},
      {"builtins.list.__ne__", compares<Py_NE>},
      {"builtins.list.__lt__", compares<Py_LT>},
      {"builtins.list.__le__", compares<Py_LE>},
      {"builtins.list.__gt__", compares<Py_GT>},
      {"builtins.list.__ge__", compares<Py_GE>},
      {"builtins.tuple.__ne__", compares<Py_NE>},
      {"builtins.tuple.__lt__", compares<Py_LT>},
      {"builtins.tuple.__le__", compares<Py_LE>},
      {"builtins.tuple.__gt__", compares<Py_GT>},
      {"builtins.tuple.__ge__", compares<Py_GE>},
      {"builtins.set.__eq__", compares<Py_EQ>},
      {"builtins.set.__ne__", compares<Py_NE>},
      {"builtins.set.__lt__", compares<Py_LT>},
      {"builtins.set.__le__", compares<Py_LE>},
      {"builtins.set.__gt__", compares<Py_GT>},
      {"builtins.set.__ge__", compares<Py_GE>},
      {"builtins.frozenset.__eq__", compares<Py_EQ>},
      {"builtins.frozenset.__ne__", compares<Py_NE>},
      {"builtins.frozenset.__lt__", compares<Py_LT>},
      {"builtins.frozenset.__le__", compares<Py_LE>},
      {"builtins.frozenset.__gt__", compares<Py_GT>},
      {"builtins.frozenset.__ge__", compares<Py_GE>},
      {"builtins.dict.__eq__", compares<Py_EQ>},
      {"builtins.dict.__ne__", compares<Py_NE>},
      {"builtins.list.__add__", operates<NB_ADD>},
      {"builtins.list.__mul__", operates<NB_MULTIPLY>},
      {"builtins.list.__iadd__", operates<NB_INPLACE_ADD>},
      {"builtins.list.__imul__", operates<NB_INPLACE_MULTIPLY>},
      {"builtins.tuple.__add__", operates<NB_ADD>},
      {"builtins.tuple.__mul__", operates<NB_MULTIPLY>},
      {"builtins.set.__or__", operates<NB_OR>},
      {"builtins.set.__ior__", operates<NB_INPLACE_OR>},
      {"builtins.set.__and__", operates<NB_AND>},
      {"builtins.set.__iand__", operates<NB_INPLACE_AND>},
      {"builtins.set.__sub__", operates<NB_SUBTRACT>},
      {"builtins.set.__isub__", operates<NB_INPLACE_SUBTRACT>},
      {"builtins.set.__xor__", operates<NB_XOR>},
      {"builtins.set.__ixor__", operates<NB_INPLACE_XOR>},
      {"builtins.frozenset.__or__", operates<NB_OR>},
      {"builtins.frozenset.__and__", operates<NB_AND>},
      {"builtins.frozenset.__sub__", operates<NB_SUBTRACT>},
      {"builtins.frozenset.__xor__", operates<NB_XOR>},
      {"builtins.dict.__or__", operates<NB_OR>},
      {"builtins.dict.__ior__", operates<NB_INPLACE_OR>},
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
      {"builtins.set.add", set_add},
      {"builtins.set.discard", changes_contents},
      {"builtins.set.remove", changes_contents},
      {"builtins.set.update", set_update},
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
      {"builtins.set.pop", set_pop},
      {"builtins.set.__contains__", set_contains},
      {"builtins.frozenset.__contains__", set_contains},
      {"builtins.frozenset.intersection", reads_contents},
      {"builtins.frozenset.difference", reads_contents},
      {"builtins.frozenset.symmetric_difference", reads_contents},
      {"builtins.frozenset.issubset", reads_contents},
      {"builtins.frozenset.issuperset", reads_contents},
      {"builtins.frozenset.isdisjoint", reads_contents},
      {"builtins.frozenset.copy", reads_contents},
  };
}

}  // namespace assay::capture
