// Special methods of builtin types, called by name: `list.__len__(x)`, `super().__iter__()`,
// `a.__eq__(b)`. Where an operator does the same, it is the operator.
#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

PyObject* not_modelled(Recorder& recorder, Activation& a, const Call& call) {
  return recorder.call_plainly(a, call, "a special method of an object that is not known");
}

// What a method reads that looks at everything in its arguments.
bool know_operand(Recorder& recorder, PyObject* object) {
  if (!recorder.know_all(object)) return false;
  if (PyAnySet_Check(object)) recorder.use_items_as_keys(object);
  return true;
}

}  // namespace

PyObject* computes(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (!know_operand(recorder, call.args[i])) return not_modelled(recorder, a, call);
  }
  if (call.count == 2 && !recorder.know_comparable(call.args[0], call.args[1])) {
    return not_modelled(recorder, a, call);
  }
  PyObject* result = recorder.call_watched(a, call);
  return result == Py_NotImplemented ? result : recorder.made(a, result, "a special method");
}

namespace {

// __hash__, __repr__ and object.__str__, which calls __repr__: those of objects tell where they
// lie.
PyObject* computed_of_values(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_watched(a, call);  // raises
  PyObject* object = call.args[0];
  const bool is_known = recorder.has_only_values(object) ||
                        (Py_TYPE(object) == &PyRange_Type && recorder.know_contents(object)) ||
                        recorder.is_python_method(object, "__repr__");
  return is_known ? recorder.call_watched(a, call) : not_modelled(recorder, a, call);
}

// As iter() does; of a class with another __iter__, its builtin base's.
PyObject* iterates(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_watched(a, call);  // raises
  PyObject* object = call.args[0];
  if (!recorder.is_python_method(object, "__iter__"))
    return recorder.get_iter(a, {object, nullptr});
  if (PyAnySet_Check(object) || !recorder.know_contents(object)) {
    return not_modelled(recorder, a, call);
  }
  return recorder.made(a, recorder.call_watched(a, call), "an iterator");
}

PyObject* iterates_backward(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_watched(a, call);  // raises
  if (!recorder.know_contents(call.args[0])) return not_modelled(recorder, a, call);
  return recorder.made(a, recorder.call_watched(a, call), "an iterator");
}

PyObject* advances(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !PyIter_Check(call.args[0])) return recorder.call_watched(a, call);
  PyObject* item = recorder.next(a, {call.args[0], nullptr});
  if (item == nullptr && PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_StopIteration);
  return item;
}

// ---- deque and range: their items ----

bool is_deque_or_range(PyObject* object) {
  return Py_TYPE(object) == deque_type() || Py_TYPE(object) == &PyRange_Type;
}

PyObject* gets_item(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !is_deque_or_range(call.args[0])) return not_modelled(recorder, a, call);
  return recorder.load_item(a, {call.args[0], nullptr}, {call.args[1], nullptr});
}

PyObject* sets_item(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 3 || !is_deque_or_range(call.args[0])) return not_modelled(recorder, a, call);
  const bool is_set = recorder.store_item(a, {call.args[0], nullptr}, {call.args[1], nullptr},
                                          {call.args[2], nullptr});
  return is_set ? Py_NewRef(Py_None) : nullptr;
}

PyObject* deletes_item(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !is_deque_or_range(call.args[0])) return not_modelled(recorder, a, call);
  return recorder.delete_item(a, {call.args[0], nullptr}, {call.args[1], nullptr})
             ? Py_NewRef(Py_None)
             : nullptr;
}

PyObject* contains_item(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !is_deque_or_range(call.args[0])) return not_modelled(recorder, a, call);
  return recorder.contains(a, {call.args[1], nullptr}, {call.args[0], nullptr}, false);
}

// deque.remove(value): the items are compared with it.
PyObject* removes_item(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || Py_TYPE(call.args[0]) != deque_type() ||
      !know_operand(recorder, call.args[0]) || !recorder.know_sortable(call.args[1]) ||
      !recorder.before_change(call.args[0])) {
    return not_modelled(recorder, a, call);
  }
  PyObject* result = recorder.call_watched(a, call);
  if (recorder.is_recording()) recorder.changed_contents(call.args[0]);
  return result;
}

// deque += iterable.
PyObject* extends_in_place(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const extend = PyDict_GetItemString(deque_type()->tp_dict, "extend");
  if (call.count != 2) return recorder.call_watched(a, call);  // raises
  const Ref done = Ref::steal(recorder.call_object(a, {extend, call.args, 2, nullptr}));
  return done ? Py_NewRef(call.args[0]) : nullptr;
}

// ---- Making and initializing ----

// list.__new__(cls), which ignores what else it is given.
PyObject* makes_empty(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 0 || !PyType_Check(call.args[0])) return recorder.call_watched(a, call);
  PyObject* made = recorder.call_watched(a, call);
  if (made != nullptr && recorder.is_recording()) recorder.track_local(made);
  return made;
}

// list.__init__(self, items) and set.__init__(self, items): whatever was there goes.
template <bool is_list>
PyObject* initializes(Recorder& recorder, Activation& a, const Call& call) {
  PyTypeObject& type = is_list ? PyList_Type : PySet_Type;
  static PyObject* const clear = PyDict_GetItemString(type.tp_dict, "clear");
  static PyObject* const fill = PyDict_GetItemString(type.tp_dict, is_list ? "extend" : "update");
  if (call.count == 0 || call.count > 2 || call.names != nullptr ||
      PyType_IsSubtype(Py_TYPE(call.args[0]), &type) == 0) {
    return recorder.call_watched(a, call);  // raises
  }
  if (PyObject_Size(call.args[0]) != 0) {
    const Ref cleared = Ref::steal(recorder.call_object(a, {clear, call.args, 1, nullptr}));
    if (!cleared) return nullptr;
  }
  if (call.count == 1) return Py_NewRef(Py_None);
  return recorder.call_object(a, {fill, call.args, 2, nullptr});
}

// A copy has the same factory.
PyObject* copies_defaultdict(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const name = PyUnicode_InternFromString("default_factory");
  if (call.count != 1 || !recorder.touch(call.args[0])) return not_modelled(recorder, a, call);
  const Ref factory = Ref::steal(recorder.get_attribute(a, call.args[0], name));
  if (!factory) return nullptr;
  return reads_contents(recorder, a, call);
}

void add(ModelTable& table, std::initializer_list<const char*> types,
         std::initializer_list<const char*> names, Model model) {
  for (const char* type : types) {
    for (const char* name : names) {
      auto* text = new std::string(std::string(type) + "." + name);  // as long as the table lives
      table.push_back({text->c_str(), model});
    }
  }
}

}  // namespace

ModelTable special_method_models() {
  constexpr const char* deque = "collections.deque";
  constexpr const char* ordered = "collections.OrderedDict";
  constexpr const char* by_default = "collections.defaultdict";
  ModelTable table;
  add(table,
      {"builtins.dict", "builtins.range", "builtins.slice", "builtins.complex", "builtins.bytes",
       "builtins.tuple", ordered, by_default, deque},
      {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}, computes);
  add(table, {"builtins.set", "builtins.frozenset"}, {"__len__", "__rand__", "__ror__", "__rsub__"},
      computes);
  add(table, {"builtins.set", "builtins.frozenset"}, {"__rxor__"}, computes);
  add(table, {"builtins.list", "builtins.tuple", deque}, {"__mul__", "__rmul__"}, computes);
  add(table, {deque}, {"__add__"}, computes);
  add(table, {"builtins.dict", ordered, by_default}, {"__or__", "__ror__"}, computes);
  add(table, {"builtins.range"}, {"__bool__"}, computes);
  add(table,
      {"builtins.list", "builtins.tuple", "builtins.dict", "builtins.set", "builtins.frozenset",
       "builtins.range", "builtins.str", "builtins.bytes", deque, ordered},
      {"__iter__"}, iterates);
  add(table, {"builtins.list", "builtins.dict", "builtins.range", deque, ordered}, {"__reversed__"},
      iterates_backward);
  add(table,
      {"builtins.list", "builtins.tuple", "builtins.dict", "builtins.range", "builtins.slice",
       "builtins.bool"},
      {"__repr__"}, computed_of_values);
  add(table, {"builtins.object"}, {"__str__"}, computed_of_values);
  add(table,
      {"_collections_abc.list_iterator", "_collections_abc.list_reverseiterator",
       "_collections_abc.tuple_iterator", "_collections_abc.range_iterator",
       "_collections_abc.str_iterator", "_collections_abc.bytes_iterator",
       "_collections_abc.set_iterator", "_collections_abc.dict_keyiterator",
       "_collections_abc.dict_valueiterator", "_collections_abc.dict_itemiterator", "builtins.zip",
       "builtins.enumerate", "builtins.map", "builtins.filter", "builtins.reversed"},
      {"__next__"}, advances);
  add(table, {"builtins.tuple", "builtins.range"}, {"__hash__"}, computed_of_values);
  add(table, {"builtins.range", deque}, {"__getitem__"}, gets_item);
  add(table, {deque}, {"__setitem__"}, sets_item);
  add(table, {deque}, {"__delitem__"}, deletes_item);
  add(table, {deque}, {"__contains__"}, contains_item);
  add(table, {deque}, {"remove"}, removes_item);
  add(table, {deque}, {"__iadd__"}, extends_in_place);
  add(table, {by_default}, {"copy", "__copy__"}, copies_defaultdict);
  add(table, {"builtins.list", "builtins.dict", "builtins.set", ordered, by_default}, {"__new__"},
      makes_empty);
  add(table, {"builtins.list"}, {"__init__"}, initializes<true>);
  add(table, {"builtins.set"}, {"__init__"}, initializes<false>);
  add(table, {"builtins.int", "builtins.bool"},
      {"__rand__", "__ror__", "__rxor__", "__rdivmod__", "__rlshift__", "__rrshift__", "__and__",
       "__or__", "__xor__", "__repr__"},
      pure_model);
  add(table, {"builtins.float"}, {"__rdivmod__", "__rfloordiv__", "__rmod__", "__rpow__"},
      pure_model);
  add(table, {"builtins.str"}, {"__rmod__", "format_map"}, pure_model);
  add(table, {"builtins.bytes"},
      {"__repr__", "__str__", "__mod__", "__rmod__", "__rmul__", "capitalize", "expandtabs",
       "isascii", "istitle", "__bytes__"},
      pure_model);
  add(table, {"builtins.complex"},
      {"__bool__", "__complex__", "__pos__", "__pow__", "__radd__", "__rmul__", "__rpow__",
       "__rsub__", "__rtruediv__"},
      pure_model);
  return table;
}

}  // namespace assay::capture
