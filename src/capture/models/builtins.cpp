// Builtins that look at objects, types and iterators.
#include <string>

#include "capture/arrays.h"
#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

PyObject* len(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_watched(a, call);  // raises
  PyObject* object = call.args[0];
  if (is_scalar(object)) return recorder.call_watched(a, call);
  if (!recorder.touch(object)) return recorder.call_plainly(a, call, "len() of an unknown object");
  if (recorder.has_open_size(object)) {
    return recorder.call_plainly(a, call, "the size of a tensor follows from values");
  }
  if (is_array(object)) {
    static PyObject* const shape = PyUnicode_InternFromString("shape");
    const Ref known = Ref::steal(recorder.array_attribute(a, object, shape));
    return known ? recorder.call_watched(a, call) : nullptr;
  }
  if (is_tensor(object)) {
    return is_plain_tensor(object) ? recorder.call_watched(a, call)
                                   : recorder.call_plainly(a, call, "len() of a tensor subclass");
  }
  if (PyObject* mapping = mapping_behind(recorder, object)) {
    PyObject* args[] = {nullptr, mapping};
    return len(recorder, a, {call.callable, args + 1, 1, nullptr});
  }
  static PyObject* const name = PyUnicode_InternFromString("__len__");
  PyObject* method = recorder.lookup_on_type(Py_TYPE(object), name);
  if (method != nullptr && PyFunction_Check(method)) {
    recorder.is_constant(method);
    PyObject* args[] = {nullptr, object};
    return recorder.call_object(a, {method, args + 1, 1, nullptr});
  }
  Tracked* tracked = recorder.find(object);
  if (dict_of_view(object) != nullptr || Py_TYPE(object) == &PyRange_Type) {
    if (tracked->kind == Tracked::Kind::local || recorder.know_contents(object)) {
      return recorder.call_watched(a, call);
    }
  }
  if (!is_container(object) && Py_TYPE(object) != deque_type()) {
    return recorder.call_plainly(a, call, "len() of an object not modelled");
  }
  if (tracked->source != nullptr && !tracked->is_known && !tracked->is_mutated) {
    tracked->source->checks.length = PyObject_Size(object);
  } else if (tracked->source != nullptr && !recorder.know_contents(object)) {
    return recorder.call_plainly(a, call, "len() of a container whose contents are not known");
  }
  return recorder.call_watched(a, call);
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

// The special methods that a conversion calls, the first that there is.
std::vector<const char*> methods_of_conversion(PyObject* conversion) {
  const auto is = [&](const PyTypeObject& type) {
    return conversion == reinterpret_cast<const PyObject*>(&type);
  };
  if (is(PyLong_Type)) return {"__int__", "__index__", "__trunc__"};
  if (is(PyFloat_Type)) return {"__float__", "__index__"};
  if (is(PyComplex_Type)) return {"__complex__", "__float__", "__index__"};
  if (is(PyBytes_Type)) return {"__bytes__"};
  if (is(PyUnicode_Type)) return {"__str__", "__repr__"};
  static PyObject* const format = find_builtin("format");
  if (conversion == format) return {"__format__"};
  return {"__repr__"};
}

// Whether a conversion of the object runs Python code, which is followed.
bool converts_in_python(Recorder& recorder, PyObject* conversion, PyObject* object) {
  for (const char* name : methods_of_conversion(conversion)) {
    const Ref text = Ref::steal(PyUnicode_InternFromString(name));
    PyObject* method = recorder.lookup_on_type(Py_TYPE(object), text.get());
    if (method == nullptr || method == _PyType_Lookup(&PyBaseObject_Type, text.get())) continue;
    return PyFunction_Check(method);
  }
  return false;
}

PyObject* to_value(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count >= 1 && is_tensor(call.args[0])) {
    const Ref name = Ref::steal(PyObject_GetAttrString(call.callable, "__name__"));
    return recorder.call_plainly(a, call,
                                 "the value of a tensor is read (" + to_string(name.get()) + "())");
  }
  bool is_value = true;
  for (std::size_t i = 0; i < call.count; ++i) is_value = is_value && is_scalar(call.args[i]);
  if (is_value) return recorder.made(a, recorder.call_watched(a, call), "a conversion");
  if (call.callable == reinterpret_cast<PyObject*>(&PyBool_Type) && call.count == 1) {
    const int is_true = recorder.is_true(a, {call.args[0], nullptr});
    return is_true < 0 ? nullptr : truth(is_true == 1);
  }
  PyObject* object = call.count == 1 ? call.args[0] : nullptr;
  if (object == nullptr || !recorder.touch(object) || recorder.is_computed_array(object)) {
    return recorder.call_plainly(a, call, "a conversion of an object that is not modelled");
  }
  const bool is_known =
      PyType_Check(object) || is_torch_enum(object) || is_device(object) ||
      is_value_of_subclass(object) || is_array_scalar(object) || recorder.has_only_values(object) ||
      (PyExceptionInstance_Check(object) && recorder.find(object)->kind == Tracked::Kind::local &&
       has_known_text(recorder, object));
  if (is_known || converts_in_python(recorder, call.callable, object)) {
    return recorder.made(a, recorder.call_watched(a, call), "a conversion");
  }
  return recorder.call_plainly(a, call, "a conversion of an object that is not modelled");
}

// ---- Reductions over iterables ----

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

// ---- Iterators ----

PyObject* iter(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 2 && recorder.touch(call.args[0]) && is_scalar(call.args[1])) {
    // What it calls is followed.
    Ref function = PyFunction_Check(call.args[0]) ? Ref::borrow(call.args[0])
                                                  : followed(recorder, call.args[0]);
    if (!function) return nullptr;
    PyObject* args[] = {nullptr, function.get(), call.args[1]};
    return recorder.made(a, recorder.call_watched(a, {call.callable, args + 1, 2, nullptr}),
                         "an iterator");
  }
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
    if (is_reversed && recorder.is_python_method(argument, "__reversed__")) {
      return recorder.call_method(a, argument, "__reversed__", {});
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
    if (recorder.is_recording() && !recorder.may_be_advanced(args.back())) {
      return recorder.call_plainly(a, call, "an iterator from before the segment is advanced");
    }
  }
  if (!recorder.is_recording()) {
    return PyObject_Vectorcall(call.callable, args.data() + 1, call.positional(), call.names);
  }
  // A function in C would run unseen.
  if (has_function && args.size() > 2 && args[1] != Py_None && !PyFunction_Check(args[1])) {
    kept.push_back(followed(recorder, args[1]));
    if (!kept.back()) return nullptr;
    args[1] = kept.back().get();
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
  if (call.count != 2) return recorder.call_watched(a, call);
  const Ref items = items_of(recorder, a, call.args[1]);
  if (!items) return nullptr;
  PyObject* args[] = {nullptr, call.args[0], items.get()};
  const Call with_items{call.callable, args + 1, 2, nullptr};
  return recorder.made(a, recorder.call_watched(a, with_items), "tuple.__new__");
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

// Identity, or NotImplemented.
PyObject* object_compare(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || call.names != nullptr) return recorder.call_watched(a, call);  // raises
  const Ref same =
      Ref::steal(recorder.is(a, {call.args[0], nullptr}, {call.args[1], nullptr}, false));
  return same ? recorder.call_watched(a, call) : nullptr;
}

// type.__call__(cls, ...), as metaclasses call it through super().
PyObject* type_call(Recorder& recorder, Activation& a, const Call& call) {
  if (call.positional() == 0 || !PyType_Check(call.args[0]) || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "type.__call__ of an unknown class");
  }
  return recorder.instantiate(a, {call.args[0], call.args + 1, call.count - 1, call.names});
}

PyObject* vars(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const name = PyUnicode_InternFromString("__dict__");
  if (call.count != 1) return recorder.call_plainly(a, call, "the variables of a frame");
  PyObject* dict = recorder.get_attribute(a, call.args[0], name);
  if (dict == nullptr && PyErr_ExceptionMatches(PyExc_AttributeError) != 0) {
    PyErr_SetString(PyExc_TypeError, "vars() argument must have __dict__ attribute");
  }
  return dict;
}

PyObject* globals(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 0) return recorder.call_watched(a, call);  // raises
  recorder.is_constant(a.frame->f_globals);
  return Py_NewRef(a.frame->f_globals);
}

PyObject* object_getattribute(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);
  return recorder.generic_attribute(a, call.args[0], call.args[1]);
}

}  // namespace

ModelTable builtin_models() {
  return {
      {"builtins.len", len},
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
      {"builtins.format", to_value},
      {"builtins.sum", sum},
      {"builtins.any", any_or_all<true>},
      {"builtins.all", any_or_all<false>},
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
      {"builtins.vars", vars},
      {"builtins.globals", globals},
      {"builtins.type.__call__", type_call},
      {"builtins.object.__eq__", object_compare},
      {"builtins.object.__ne__", object_compare},
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
