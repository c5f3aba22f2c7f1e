// Questions about what an object is: isinstance(), id(), hash(), callable(), inspect.signature().
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

constexpr int kNotModelled = -2;

// How a class answers isinstance (or issubclass): as `type` does, by a registry, or by Python code
// of its metaclass.
enum class Answers { as_type, by_registry, in_python, unknown };

Answers how_it_answers(Recorder& recorder, PyObject* of, const char* question, PyObject** function,
                       bool follows_from_type) {
  static PyObject* const abstract = [] {
    const Ref module = Ref::steal(import_module("abc"));
    return PyObject_GetAttrString(module.get(), "ABCMeta");
  }();
  const Ref name = Ref::steal(PyUnicode_InternFromString(question));
  PyTypeObject* meta = Py_TYPE(of);
  PyObject* found = recorder.lookup_on_type(meta, name.get());
  *function = found;
  if (found == _PyType_Lookup(&PyType_Type, name.get())) return Answers::as_type;
  if (found == _PyType_Lookup(reinterpret_cast<PyTypeObject*>(abstract), name.get())) {
    return Answers::by_registry;
  }
  // nn.Parameter and its like: by a flag of the tensor, which follows from its type.
  const Ref module =
      Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(meta), "__module__"));
  PyErr_Clear();
  if (follows_from_type && module && PyUnicode_Check(module.get()) &&
      to_string(module.get()).starts_with("torch")) {
    return Answers::as_type;
  }
  return found != nullptr && PyFunction_Check(found) ? Answers::in_python : Answers::unknown;
}

// 0, 1, -1 with an exception set, or kNotModelled.
int ask_in_python(Recorder& recorder, Activation& a, PyObject* function, PyObject* of,
                  PyObject* about) {
  recorder.is_constant(function);
  PyObject* args[] = {nullptr, of, about};
  const Ref answer = Ref::steal(recorder.call_object(a, {function, args + 1, 2, nullptr}));
  return answer ? recorder.is_true(a, {answer.get(), nullptr}) : -1;
}

// The types of `int | str`; null for another object.
Ref types_of_union(PyObject* of) {
  static PyTypeObject* const type = [] {
    const Ref module = Ref::steal(import_module("types"));
    return reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), "UnionType"));
  }();
  return Py_TYPE(of) == type ? Ref::steal(PyObject_GetAttrString(of, "__args__")) : Ref();
}

int is_instance(Recorder& recorder, Activation& a, PyObject* object, PyObject* of) {
  if (const Ref types = types_of_union(of)) return is_instance(recorder, a, object, types.get());
  if (PyTuple_Check(of)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(of); ++i) {
      const int answer = is_instance(recorder, a, object, PyTuple_GET_ITEM(of, i));
      if (answer != 0) return answer;
    }
    return 0;
  }
  if (!PyType_Check(of)) return kNotModelled;
  PyTypeObject* type = Py_TYPE(object);
  if (reinterpret_cast<PyObject*>(type) == of) return 1;
  // An object may claim to be of another class.
  static PyObject* const class_name = PyUnicode_InternFromString("__class__");
  if (recorder.lookup_on_type(type, class_name) != _PyType_Lookup(&PyBaseObject_Type, class_name)) {
    return kNotModelled;
  }
  PyObject* function = nullptr;
  switch (how_it_answers(recorder, of, "__instancecheck__", &function,
                         is_tensor(object) || is_scalar(object))) {
    case Answers::as_type:
      if ((type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0 || is_tensor(object)) {
        const SuspendScope suspended(recorder);
        return PyObject_IsInstance(object, of);
      }
      return recorder.is_subclass(type, of, false);
    case Answers::by_registry:
      return recorder.is_subclass(type, of, true);
    case Answers::in_python:
      return ask_in_python(recorder, a, function, of, object);
    case Answers::unknown:
      break;
  }
  return kNotModelled;
}

PyObject* isinstance(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.touch(call.args[0]) || !recorder.know_all(call.args[1])) {
    return recorder.call_plainly(a, call, "isinstance() of an unknown object");
  }
  const int answer = is_instance(recorder, a, call.args[0], call.args[1]);
  if (answer == kNotModelled) {
    return recorder.call_plainly(a, call, "isinstance() of a class that is not modelled");
  }
  return answer < 0 ? nullptr : truth(answer == 1);
}

int is_subclass(Recorder& recorder, Activation& a, PyObject* type, PyObject* of) {
  if (PyTuple_Check(of)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(of); ++i) {
      const int answer = is_subclass(recorder, a, type, PyTuple_GET_ITEM(of, i));
      if (answer != 0) return answer;
    }
    return 0;
  }
  if (!PyType_Check(of) || !PyType_Check(type)) return kNotModelled;
  auto* asked = reinterpret_cast<PyTypeObject*>(type);
  PyObject* function = nullptr;
  switch (how_it_answers(recorder, of, "__subclasscheck__", &function, true)) {
    case Answers::as_type:
      return recorder.is_subclass(asked, of, false);
    case Answers::by_registry:
      return recorder.is_subclass(asked, of, true);
    case Answers::in_python:
      return ask_in_python(recorder, a, function, of, type);
    case Answers::unknown:
      break;
  }
  return kNotModelled;
}

PyObject* issubclass(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.know_all(call.args[0]) || !recorder.know_all(call.args[1])) {
    return recorder.call_plainly(a, call, "issubclass() of an unknown object");
  }
  const int answer = is_subclass(recorder, a, call.args[0], call.args[1]);
  if (answer == kNotModelled) {
    return recorder.call_plainly(a, call, "issubclass() of a class that is not modelled");
  }
  return answer < 0 ? nullptr : truth(answer == 1);
}

// type.__instancecheck__(cls, object), as metaclasses call it through super().
PyObject* type_instancecheck(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyType_Check(call.args[0]) || !recorder.touch(call.args[1])) {
    return recorder.call_plainly(a, call, "type.__instancecheck__ of an unknown object");
  }
  const int answer = recorder.is_subclass(Py_TYPE(call.args[1]), call.args[0], false);
  return answer < 0 ? nullptr : truth(answer == 1);
}

// What abc.ABCMeta.__instancecheck__ and __subclasscheck__ call.
PyObject* abc_instancecheck(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyType_Check(call.args[0]) || !recorder.touch(call.args[1])) {
    return recorder.call_plainly(a, call, "isinstance() of an unknown object");
  }
  const int answer = recorder.is_subclass(Py_TYPE(call.args[1]), call.args[0], true);
  return answer < 0 ? nullptr : truth(answer == 1);
}

PyObject* abc_subclasscheck(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyType_Check(call.args[0]) || !PyType_Check(call.args[1])) {
    return recorder.call_plainly(a, call, "issubclass() of an unknown object");
  }
  const int answer =
      recorder.is_subclass(reinterpret_cast<PyTypeObject*>(call.args[1]), call.args[0], true);
  return answer < 0 ? nullptr : truth(answer == 1);
}

PyObject* id(Recorder& recorder, Activation& a, const Call& call) {
  const Tracked* tracked = nullptr;
  if (call.count == 1 && !is_scalar(call.args[0]) && recorder.touch(call.args[0])) {
    tracked = recorder.find(call.args[0]);
  }
  if (tracked == nullptr || tracked->source == nullptr) {
    return recorder.call_plainly(a, call, "id() of a new object");
  }
  recorder.guard_identity(call.args[0]);
  return recorder.call_watched(a, call);
}

bool has_only_scalars(PyObject* tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (!is_scalar(PyTuple_GET_ITEM(tuple, i))) return false;
  }
  return true;
}

PyObject* hash(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "hash() of an unknown object");
  }
  PyObject* object = call.args[0];
  static PyObject* const name = PyUnicode_InternFromString("__hash__");
  PyObject* method = is_scalar(object) ? nullptr : recorder.lookup_on_type(Py_TYPE(object), name);
  if (method != nullptr && PyFunction_Check(method) && !is_tensor(object)) {
    return recorder.made(a, recorder.call_watched(a, call), "hash()");
  }
  if (Py_TYPE(object)->tp_hash == PyObject_HashNotImplemented) {
    return recorder.call_watched(a, call);  // raises
  }
  const bool is_by_identity = Py_TYPE(object)->tp_hash == PyBaseObject_Type.tp_hash;
  if (!is_scalar(object) && is_by_identity) {
    if (recorder.find(object)->source == nullptr) {
      return recorder.call_plainly(a, call, "hash() of a new object");
    }
    recorder.guard_identity(object);
    return recorder.call_watched(a, call);
  }
  const bool is_value = is_value_of_subclass(object) && !recorder.is_computed_array(object);
  if (is_scalar(object) || is_value || recorder.has_only_values(object)) {
    return recorder.call_watched(a, call);
  }
  if (PyFrozenSet_CheckExact(object) && recorder.know_contents(object)) {
    const Ref items = Ref::steal(PySequence_Tuple(object));
    if (items && has_only_scalars(items.get())) {
      return recorder.call_watched(a, call);
    }
  }
  return recorder.call_plainly(a, call, "hash() of an object that is not modelled");
}

PyObject* is_callable(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "callable() of an unknown object");
  }
  return recorder.call_watched(a, call);  // follows from the type
}

// What a signature is follows from the function, which is guarded to be this one.
PyObject* signature(Recorder& recorder, Activation& a, const Call& call) {
  PyObject* function = call.count == 1 ? call.args[0] : nullptr;
  if (function != nullptr && PyMethod_Check(function)) {
    recorder.touch(function);
    function = PyMethod_GET_FUNCTION(function);
  }
  if (function == nullptr || !PyFunction_Check(function) || recorder.find(function) == nullptr) {
    return recorder.call_plainly(a, call, "inspect.signature() of an object not modelled");
  }
  recorder.guard_identity(function);
  PyObject* made = nullptr;
  {
    const SuspendScope suspended(recorder);
    made = recorder.call_watched(a, call);
  }
  if (made != nullptr && recorder.is_recording()) recorder.is_constant(made);
  return made;
}

}  // namespace

ModelTable introspection_models() {
  return {
      {"builtins.isinstance", isinstance},
      {"builtins.issubclass", issubclass},
      {"builtins.type.__instancecheck__", type_instancecheck},
      {"_abc._abc_instancecheck", abc_instancecheck},
      {"_abc._abc_subclasscheck", abc_subclasscheck},
      {"builtins.id", id},
      {"builtins.hash", hash},
      {"builtins.callable", is_callable},
      {"inspect.signature", signature},
  };
}

}  // namespace assay::capture
