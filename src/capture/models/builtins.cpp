// Builtins that look at objects, types and iterators.
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

PyObject* truth(bool value) { return Py_NewRef(value ? Py_True : Py_False); }

PyObject* len(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_watched(a, call);  // raises
  PyObject* object = call.args[0];
  if (is_scalar(object)) return recorder.call_watched(a, call);
  if (!recorder.touch(object)) return recorder.call_plainly(a, call, "len() of an unknown object");
  if (is_tensor(object)) {
    return is_plain_tensor(object) ? recorder.call_watched(a, call)
                                   : recorder.call_plainly(a, call, "len() of a tensor subclass");
  }
  static PyObject* const name = PyUnicode_InternFromString("__len__");
  PyObject* method = recorder.lookup_on_type(Py_TYPE(object), name);
  if (method != nullptr && PyFunction_Check(method)) {
    recorder.is_constant(method);
    PyObject* args[] = {nullptr, object};
    return recorder.call_object(a, {method, args + 1, 1, nullptr});
  }
  Tracked* tracked = recorder.find(object);
  if (Py_TYPE(object) == &PyDictProxy_Type && tracked->kind == Tracked::Kind::constant) {
    return recorder.call_watched(a, call);
  }
  if (dict_of_view(object) != nullptr || Py_TYPE(object) == &PyRange_Type) {
    if (tracked->kind == Tracked::Kind::local || recorder.know_contents(object)) {
      return recorder.call_watched(a, call);
    }
  }
  const bool is_container = PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object) ||
                            PyAnySet_Check(object);
  if (!is_container) return recorder.call_plainly(a, call, "len() of an object not modelled");
  if (tracked->kind == Tracked::Kind::source && !tracked->is_known && !tracked->is_mutated) {
    tracked->source->checks.length = PyObject_Size(object);
  } else if (tracked->kind == Tracked::Kind::source && !recorder.know_contents(object)) {
    return recorder.call_plainly(a, call, "len() of a container whose contents are not known");
  }
  return recorder.call_watched(a, call);
}

PyObject* isinstance(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 2 && recorder.touch(call.args[0]) && recorder.know_all(call.args[1])) {
    const SuspendScope suspended(recorder);  // ABCs ask in Python
    return recorder.call_watched(a, call);   // follows from types, which are guarded
  }
  return recorder.call_plainly(a, call, "isinstance() of an unknown object");
}

PyObject* issubclass(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 2 && recorder.know_all(call.args[0]) && recorder.know_all(call.args[1])) {
    const SuspendScope suspended(recorder);
    return recorder.call_watched(a, call);
  }
  return recorder.call_plainly(a, call, "issubclass() of an unknown object");
}

PyObject* type(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "a class is created");
  }
  PyObject* found = reinterpret_cast<PyObject*>(Py_TYPE(call.args[0]));
  recorder.is_constant(found);
  return Py_NewRef(found);
}

PyObject* getattr(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || call.count > 3 || !PyUnicode_Check(call.args[1])) {
    return recorder.call_plainly(a, call, "getattr() with arguments not modelled");
  }
  PyObject* name = Py_NewRef(call.args[1]);
  PyUnicode_InternInPlace(&name);
  const Ref kept = Ref::steal(name);
  PyObject* found = recorder.get_attribute(a, call.args[0], name);
  if (found == nullptr && call.count == 3 && PyErr_ExceptionMatches(PyExc_AttributeError) != 0) {
    PyErr_Clear();
    return Py_NewRef(call.args[2]);
  }
  return found;
}

PyObject* hasattr(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyUnicode_Check(call.args[1])) {
    return recorder.call_plainly(a, call, "hasattr() with arguments not modelled");
  }
  PyObject* name = Py_NewRef(call.args[1]);
  PyUnicode_InternInPlace(&name);
  const Ref kept = Ref::steal(name);
  const Ref found = Ref::steal(recorder.get_attribute(a, call.args[0], name));
  if (found) return truth(true);
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return nullptr;
  PyErr_Clear();
  return truth(false);
}

PyObject* setattr(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 3 || !PyUnicode_Check(call.args[1])) {
    return recorder.call_plainly(a, call, "setattr() with arguments not modelled");
  }
  PyObject* name = Py_NewRef(call.args[1]);
  PyUnicode_InternInPlace(&name);
  const Ref kept = Ref::steal(name);
  return recorder.set_attribute(a, call.args[0], name, call.args[2]) ? Py_NewRef(Py_None) : nullptr;
}

PyObject* delattr(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyUnicode_Check(call.args[1])) {
    return recorder.call_plainly(a, call, "delattr() with arguments not modelled");
  }
  return recorder.set_attribute(a, call.args[0], call.args[1], nullptr) ? Py_NewRef(Py_None)
                                                                        : nullptr;
}

// super() finds its class and object in the calling frame, which is the real one here.
PyObject* make_super(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (!recorder.touch(call.args[i])) return recorder.call_plainly(a, call, "super()");
  }
  PyObject* made = recorder.call_watched(a, call);
  if (made != nullptr && recorder.is_recording()) recorder.track_local(made);
  return made;
}

// ---- Values ----

PyObject* to_value(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count >= 1 && is_tensor(call.args[0])) {
    return recorder.call_plainly(a, call,
                                 std::string("the value of a tensor is read (") +
                                     reinterpret_cast<PyTypeObject*>(call.callable)->tp_name +
                                     "())");
  }
  bool is_value = true;
  for (std::size_t i = 0; i < call.count; ++i) is_value = is_value && is_scalar(call.args[i]);
  if (is_value) return recorder.made(a, recorder.call_watched(a, call), "a conversion");
  if (call.callable == reinterpret_cast<PyObject*>(&PyBool_Type) && call.count == 1) {
    const int is_true = recorder.is_true(a, {call.args[0], nullptr});
    return is_true < 0 ? nullptr : truth(is_true == 1);
  }
  if (call.count == 1 && recorder.know_all(call.args[0]) &&
      (PyType_Check(call.args[0]) || is_torch_enum(call.args[0]) || is_device(call.args[0]))) {
    return recorder.made(a, recorder.call_watched(a, call), "a conversion");
  }
  if (call.count == 1 && recorder.touch(call.args[0])) {
    for (const char* name : {"__int__", "__float__", "__str__", "__index__", "__repr__"}) {
      const Ref text = Ref::steal(PyUnicode_InternFromString(name));
      PyObject* method = recorder.lookup_on_type(Py_TYPE(call.args[0]), text.get());
      if (method != nullptr && PyFunction_Check(method)) {
        return recorder.made(a, recorder.call_watched(a, call), "a conversion");
      }
    }
    if ((PyList_Check(call.args[0]) || PyTuple_Check(call.args[0])) &&
        recorder.has_only_values(call.args[0])) {
      return recorder.made(a, recorder.call_watched(a, call), "a conversion");
    }
  }
  return recorder.call_plainly(a, call, "a conversion of an object that is not modelled");
}

PyObject* absolute(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !is_tensor(call.args[0])) return recorder.call_pure(a, call);
  static PyObject* const name = PyUnicode_InternFromString("__abs__");
  PyObject* method = recorder.lookup_on_type(Py_TYPE(call.args[0]), name);
  recorder.is_constant(method);
  return recorder.call_object(a, {method, call.args, 1, nullptr});
}

// ---- Reductions over iterables ----

Ref items_of(Recorder& recorder, Activation& a, PyObject* iterable) {
  Ref list = Ref::steal(recorder.build_list(a, nullptr, nullptr, 0));
  if (!list || !recorder.list_extend(a, list.get(), {iterable, nullptr})) return {};
  return list;
}

PyObject* sum(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 1 || call.count > 2) return recorder.call_watched(a, call);
  const Ref items = items_of(recorder, a, call.args[0]);
  if (!items) return nullptr;
  Ref total = call.count == 2 ? Ref::borrow(call.args[1]) : Ref::steal(PyLong_FromLong(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    total = Ref::steal(recorder.binary(a, NB_ADD, {total.get(), nullptr},
                                       {PyList_GET_ITEM(items.get(), i), nullptr}));
    if (!total) return nullptr;
  }
  return total.release();
}

// any() and all(): stop at the first item that decides.
template <bool decisive>
PyObject* any_or_all(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_watched(a, call);
  const Ref iterator = Ref::steal(recorder.get_iter(a, {call.args[0], nullptr}));
  if (!iterator) return nullptr;
  while (true) {
    const Ref item = Ref::steal(recorder.next(a, {iterator.get(), nullptr}));
    if (!item) break;
    const int is_true = recorder.is_true(a, {item.get(), nullptr});
    if (is_true < 0) return nullptr;
    if ((is_true == 1) == decisive) return truth(decisive);
  }
  return PyErr_Occurred() != nullptr ? nullptr : truth(!decisive);
}

template <int comparison>
PyObject* extreme(Recorder& recorder, Activation& a, const Call& call) {
  if (call.names != nullptr || call.count == 0) {
    bool is_known = call.count > 0;
    for (std::size_t i = 0; i < call.count; ++i) {
      is_known = is_known && (PyFunction_Check(call.args[i]) ? recorder.touch(call.args[i])
                                                             : recorder.know_all(call.args[i]));
    }
    if (!is_known) return recorder.call_plainly(a, call, "min() or max() with keywords");
    return recorder.made(a, recorder.call_watched(a, call), "min() or max()");
  }
  Ref items;
  if (call.count == 1) {
    items = items_of(recorder, a, call.args[0]);
    if (!items) return nullptr;
    if (PyList_GET_SIZE(items.get()) == 0) return recorder.call_watched(a, call);  // raises
  } else {
    items = Ref::steal(PyList_New(0));
    for (std::size_t i = 0; i < call.count; ++i) PyList_Append(items.get(), call.args[i]);
  }
  Ref best = Ref::borrow(PyList_GET_ITEM(items.get(), 0));
  for (Py_ssize_t i = 1; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    const Ref is_better =
        Ref::steal(recorder.compare(a, comparison, {item, nullptr}, {best.get(), nullptr}));
    if (!is_better) return nullptr;
    const int decided = recorder.is_true(a, {is_better.get(), nullptr});
    if (decided < 0) return nullptr;
    if (decided == 1) best = Ref::borrow(item);
  }
  return best.release();
}

PyObject* sorted(Recorder& recorder, Activation& a, const Call& call) {
  if (call.positional() != 1) return recorder.call_watched(a, call);
  const Ref items = items_of(recorder, a, call.args[0]);
  if (!items) return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    if (is_tensor(PyList_GET_ITEM(items.get(), i)) && call.names == nullptr) {
      return recorder.call_plainly(a, call, "sorted() of tensors");
    }
  }
  std::vector<PyObject*> args = {nullptr, items.get()};
  args.insert(args.end(), call.args + 1, call.args + call.count);
  for (std::size_t i = 2; i < args.size(); ++i) recorder.touch(args[i]);
  return recorder.made(
      a, recorder.call_watched(a, {call.callable, args.data() + 1, args.size() - 1, call.names}),
      "sorted()");
}

// ---- Iterators ----

PyObject* iter(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_plainly(a, call, "iter() with a sentinel");
  return recorder.get_iter(a, {call.args[0], nullptr});
}

PyObject* next(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 1 || call.count > 2 || !PyIter_Check(call.args[0])) {
    return recorder.call_plainly(a, call, "next() of an object that is not an iterator");
  }
  const Tracked* tracked = recorder.find(call.args[0]);
  if (PyGen_CheckExact(call.args[0]) && call.count == 1 && tracked != nullptr &&
      tracked->kind == Tracked::Kind::local) {
    // What a generator returns is the value of its StopIteration.
    PyObject* result = nullptr;
    const PySendResult sent =
        recorder.send(a, {call.args[0], nullptr}, {Py_None, nullptr}, &result);
    if (sent != PYGEN_RETURN) return result;
    const Ref returned = Ref::steal(result);
    _PyGen_SetStopIterationValue(returned.get());
    return nullptr;
  }
  PyObject* item = recorder.next(a, {call.args[0], nullptr});
  if (item != nullptr || PyErr_Occurred() != nullptr) return item;
  if (call.count == 2) return Py_NewRef(call.args[1]);
  PyErr_SetNone(PyExc_StopIteration);
  return nullptr;
}

// generator.send, throw and close: its frame is followed.
PyObject* generator_method(Recorder& recorder, Activation& a, const Call& call) {
  const Tracked* tracked = call.count == 0 ? nullptr : recorder.find(call.args[0]);
  bool is_known = tracked != nullptr && tracked->kind == Tracked::Kind::local;
  for (std::size_t i = 1; i < call.count; ++i) is_known = recorder.touch(call.args[i]) && is_known;
  if (!is_known) {
    return recorder.call_plainly(a, call, "a generator from before the segment goes on");
  }
  PyObject* result = recorder.call_watched(a, call);
  return result == nullptr ? nullptr : recorder.made(a, result, "a generator");
}

// zip, enumerate, map, filter, reversed: what they iterate over is known first.
PyObject* make_iterator(Recorder& recorder, Activation& a, const Call& call) {
  std::vector<PyObject*> args = {nullptr};
  std::vector<Ref> kept;
  const bool has_function = call.callable == reinterpret_cast<PyObject*>(&PyMap_Type) ||
                            call.callable == reinterpret_cast<PyObject*>(&PyFilter_Type);
  const bool is_reversed = call.callable == reinterpret_cast<PyObject*>(&PyReversed_Type);
  const bool is_enumerate = call.callable == reinterpret_cast<PyObject*>(&PyEnum_Type);
  for (std::size_t i = 0; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    if (is_scalar(argument) || (has_function && i == 0)) {
      recorder.touch(argument);
      args.push_back(argument);
      continue;
    }
    if (is_reversed || (is_enumerate && i > 0)) {
      if (!recorder.know_contents(argument)) {
        return recorder.call_plainly(a, call, "reversed() of an object that is not modelled");
      }
      args.push_back(argument);
      continue;
    }
    kept.push_back(Ref::steal(recorder.get_iter(a, {argument, nullptr})));
    if (!kept.back()) return nullptr;
    args.push_back(kept.back().get());
  }
  if (!recorder.is_recording()) {
    return PyObject_Vectorcall(call.callable, args.data() + 1, call.positional(), call.names);
  }
  // A tensor function inside map() would run unseen: it is called item by item instead.
  if (has_function && call.callable == reinterpret_cast<PyObject*>(&PyMap_Type) &&
      call.count == 2 && !PyFunction_Check(args[1])) {
    const Ref results = Ref::steal(recorder.build_list(a, nullptr, nullptr, 0));
    const Ref items = items_of(recorder, a, args[2]);
    if (!items) return nullptr;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* item_args[] = {nullptr, PyList_GET_ITEM(items.get(), i)};
      const Ref item = Ref::steal(recorder.call_object(a, {args[1], item_args + 1, 1, nullptr}));
      if (!item) return nullptr;
      if (recorder.is_recording()) {
        if (!recorder.append(results.get(), item.get())) return nullptr;
      } else if (PyList_Append(results.get(), item.get()) < 0) {
        return nullptr;
      }
    }
    return recorder.get_iter(a, {results.get(), nullptr});
  }
  return recorder.made(
      a, recorder.call_watched(a, {call.callable, args.data() + 1, args.size() - 1, call.names}),
      "an iterator");
}

// ---- Objects ----

PyObject* object_new(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 1 || !PyType_Check(call.args[0])) return recorder.call_watched(a, call);
  PyObject* made = recorder.call_watched(a, call);
  if (made != nullptr && recorder.is_recording()) recorder.track_local(made);
  return made;
}

// tuple.__new__(cls, items), as namedtuples call it.
PyObject* tuple_new(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyTuple_Check(call.args[1]) || !recorder.know_contents(call.args[1])) {
    return recorder.call_plainly(a, call, "tuple.__new__ of an unknown object");
  }
  return recorder.made(a, recorder.call_watched(a, call), "tuple.__new__");
}

PyObject* does_nothing(Recorder& recorder, Activation& a, const Call& call) {
  return recorder.call_watched(a, call);
}

PyObject* object_setattr(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 3 || !recorder.touch(call.args[0]) || !recorder.touch(call.args[2])) {
    return recorder.call_plainly(a, call, "object.__setattr__ of an unknown object");
  }
  return set_plain_attribute(recorder, a, call.args[0], call.args[1], call.args[2])
             ? Py_NewRef(Py_None)
             : nullptr;
}

PyObject* object_delattr(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "object.__delattr__ of an unknown object");
  }
  return set_plain_attribute(recorder, a, call.args[0], call.args[1], nullptr) ? Py_NewRef(Py_None)
                                                                               : nullptr;
}

PyObject* object_getattribute(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);
  return recorder.generic_attribute(a, call.args[0], call.args[1]);
}

}  // namespace

ModelTable builtin_models() {
  return {
      {"builtins.len", len},
      {"builtins.isinstance", isinstance},
      {"builtins.issubclass", issubclass},
      {"builtins.type", type},
      {"builtins.getattr", getattr},
      {"builtins.hasattr", hasattr},
      {"builtins.setattr", setattr},
      {"builtins.delattr", delattr},
      {"builtins.super", make_super},
      {"builtins.int", to_value},
      {"builtins.float", to_value},
      {"builtins.bool", to_value},
      {"builtins.complex", to_value},
      {"builtins.str", to_value},
      {"builtins.repr", to_value},
      {"builtins.bytes", to_value},
      {"builtins.hash", to_value},
      {"builtins.format", to_value},
      {"builtins.abs", absolute},
      {"builtins.sum", sum},
      {"builtins.any", any_or_all<true>},
      {"builtins.all", any_or_all<false>},
      {"builtins.min", extreme<Py_LT>},
      {"builtins.max", extreme<Py_GT>},
      {"builtins.sorted", sorted},
      {"builtins.iter", iter},
      {"builtins.next", next},
      {"builtins.zip", make_iterator},
      {"builtins.enumerate", make_iterator},
      {"builtins.map", make_iterator},
      {"builtins.filter", make_iterator},
      {"builtins.reversed", make_iterator},
      {"types.GeneratorType.send", generator_method},
      {"types.GeneratorType.throw", generator_method},
      {"types.GeneratorType.close", generator_method},
      {"builtins.object.__new__", object_new},
      {"builtins.tuple.__new__", tuple_new},
      {"builtins.object.__init__", does_nothing},
      {"builtins.object.__init_subclass__", does_nothing},
      {"builtins.object.__setattr__", object_setattr},
      {"builtins.object.__delattr__", object_delattr},
      {"builtins.object.__getattribute__", object_getattribute},
  };
}

}  // namespace assay::capture
