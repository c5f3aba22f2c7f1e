// Objects that the program makes by calling a class.
#include <algorithm>
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// type.__call__, also where a metaclass has one of its own.
PyObject* make_instance(const Call& call) {
  if (Py_TYPE(call.callable)->tp_call == PyType_Type.tp_call) {
    return PyObject_Vectorcall(call.callable, call.args, call.positional(), call.names);
  }
  const std::size_t positional = call.positional();
  const Ref args = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  const Ref kwargs = call.names == nullptr ? Ref() : Ref::steal(PyDict_New());
  for (std::size_t i = 0; i < call.count; ++i) {
    if (i < positional) {
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), Py_NewRef(call.args[i]));
    } else {
      PyDict_SetItem(kwargs.get(),
                     PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional)),
                     call.args[i]);
    }
  }
  return PyType_Type.tp_call(call.callable, args.get(), kwargs.get());
}

// Whether C code reads what instances of a container's subclass are made of: __init__ of those that
// can change, __new__ of the others.
bool fills_in_c(PyTypeObject* type, PyObject* found_new, PyObject* found_init) {
  const bool is_fixed =
      PyType_IsSubtype(type, &PyTuple_Type) != 0 || PyType_IsSubtype(type, &PyFrozenSet_Type) != 0;
  if (is_fixed) return found_new == nullptr || Py_TYPE(found_new) != &PyStaticMethod_Type;
  const bool is_container = PyType_IsSubtype(type, &PyList_Type) != 0 ||
                            PyType_IsSubtype(type, &PyDict_Type) != 0 ||
                            PyType_IsSubtype(type, &PySet_Type) != 0;
  return is_container && (found_init == nullptr || !PyFunction_Check(found_init));
}

}  // namespace

bool Recorder::may_be_advanced(PyObject* iterator) {
  const Tracked* tracked = tracked_.find(iterator);
  return (tracked != nullptr && tracked->kind == Tracked::Kind::local) ||
         is_python_method(iterator, "__next__");
}

bool Recorder::know_given_items(PyObject* iterable) {
  if (is_scalar(iterable)) return true;
  if (!touch(iterable)) return false;
  if (is_python_method(iterable, "__iter__") || is_python_method(iterable, "keys")) return true;
  if (PyIter_Check(iterable)) return may_be_advanced(iterable);
  PyObject* viewed = dict_of_view(iterable);
  if (!know_contents(viewed == nullptr ? iterable : viewed) || !know_order(iterable)) return false;
  if (!is_sequence(iterable)) return true;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(iterable); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(iterable, i);  // perhaps a pair of a key and a value
    if (is_container(item) && !know_contents(item)) return false;
  }
  return true;
}

PyObject* Recorder::instantiate(Activation& a, const Call& call) {
  static PyObject* const new_name = PyUnicode_InternFromString("__new__");
  static PyObject* const init_name = PyUnicode_InternFromString("__init__");
  static PyObject* const del_name = PyUnicode_InternFromString("__del__");
  auto* type = reinterpret_cast<PyTypeObject*>(call.callable);
  PyObject* found_new = lookup_on_type(type, new_name);
  PyObject* found_init = lookup_on_type(type, init_name);
  const bool is_exception = PyType_HasFeature(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) != 0;
  const bool is_python_class = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 &&
                               reinterpret_cast<PyHeapTypeObject*>(type)->ht_module == nullptr;
  const newfunc create = type->tp_new;
  const bool has_known_new = is_exception ||
                             (found_new != nullptr && Py_TYPE(found_new) == &PyStaticMethod_Type) ||
                             create == PyBaseObject_Type.tp_new || create == PyDict_Type.tp_new ||
                             create == PyODict_Type.tp_new || create == PyTuple_Type.tp_new ||
                             create == PyList_Type.tp_new || create == PySet_Type.tp_new ||
                             create == PyFrozenSet_Type.tp_new;
  if (type == &PyBaseObject_Type && call.count == 0) {  // a sentinel
    PyObject* made_object = PyObject_CallNoArgs(call.callable);
    if (made_object != nullptr) track_local(made_object);
    return made_object;
  }
  if (is_struct_sequence(type)) {
    for (std::size_t i = 0; i < call.count; ++i) {
      if (!know_all(call.args[i])) return call_plainly(a, call, "a tuple of unknown objects");
    }
    return made(a, call_watched(a, call), "a tuple");
  }
  if ((!is_python_class && !is_exception) || !has_known_new ||
      lookup_on_type(type, del_name) != nullptr) {
    return call_plainly(
        a, call,
        "an object of type '" + std::string(type->tp_name) + "' is created, which is not modelled");
  }
  if (fills_in_c(type, found_new, found_init)) {
    const bool has_factory = PyType_IsSubtype(type, defaultdict_type()) != 0;
    for (std::size_t i = has_factory ? 1 : 0; i < call.positional(); ++i) {
      if (!know_given_items(call.args[i])) {
        return call_plainly(a, call, "a container is made of an object that is not known");
      }
    }
  }
  if (found_init != nullptr && PyFunction_Check(found_init)) is_constant(found_init);
  for (std::size_t i = 0; i < call.count; ++i) touch(call.args[i]);
  // What C code puts into a dict is compared with its keys.
  if (found_init == nullptr || !PyFunction_Check(found_init)) use_sizes(call, SizeUse::numbers);
  const std::size_t depth = creating_.size();
  creating_.push_back(type);
  const std::size_t before = unexplained();
  PyObject* result = watched(a, before, make_instance(call));
  creating_.resize(std::min(depth, creating_.size()));  // shorter if a new segment began meanwhile
  if (result == nullptr || !is_recording() || is_scalar(result)) return result;
  if (tracked_.find(result) == nullptr) {
    tracked_.add(result, Tracked::Kind::local).is_known = true;
  }
  return result;
}

}  // namespace assay::capture
