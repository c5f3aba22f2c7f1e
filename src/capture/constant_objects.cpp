#include "capture/constant_objects.h"

#include <algorithm>
#include <unordered_set>

#include "capture/torch_types.h"

namespace assay::capture {

namespace {

using Types = std::unordered_set<PyTypeObject*>;

PyTypeObject* type_of_attribute(PyTypeObject* type, const char* name) {
  PyObject* found = PyDict_GetItemString(type->tp_dict, name);
  return found == nullptr ? nullptr : Py_TYPE(found);
}

Types make_identity_types() {
  Types types = {&PyType_Type,        &PyModule_Type,           &PyCode_Type,
                 &PyMethodDescr_Type, &PyClassMethodDescr_Type, &PyGetSetDescr_Type,
                 &PyMemberDescr_Type, &PyWrapperDescr_Type,     &PyProperty_Type,
                 &PyClassMethod_Type, &PyStaticMethod_Type};
  types.insert(type_of_attribute(&PyBaseObject_Type, "__init__"));
  const Ref module = Ref::steal(import_module("types"));
  for (const char* name : {"UnionType", "GenericAlias"}) {
    types.insert(reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), name)));
  }
  return types;
}

void add_types_of(Types& types, const char* expression, PyObject* globals) {
  PyObject* list = PyRun_String(expression, Py_eval_input, globals, globals);
  if (list == nullptr) {
    PyErr_Print();
    return;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    types.insert(reinterpret_cast<PyTypeObject*>(PyList_GET_ITEM(list, i)));  // static types
  }
  Py_DECREF(list);
}

Types make_iterator_types() {
  Types types;
  PyObject* globals = PyDict_New();
  PyDict_SetItemString(globals, "__builtins__", import_module("builtins"));
  PyDict_SetItemString(globals, "itertools", import_module("itertools"));
  PyDict_SetItemString(globals, "OrderedDict", reinterpret_cast<PyObject*>(&PyODict_Type));
  PyDict_SetItemString(globals, "deque", reinterpret_cast<PyObject*>(deque_type()));
  add_types_of(types,
               "[type(iter([])), type(iter(())), type(iter(range(0))), type(iter(range(2**70))),"
               " type(iter({})), type(iter({}.items())), type(iter({}.values())),"
               " type(reversed([])), type(reversed({})), type(reversed(())), type(iter('')),"
               " enumerate, zip, map, filter, type({}.keys()), type({}.values()),"
               " type({}.items()), type(OrderedDict().keys()), type(OrderedDict().values()),"
               " type(OrderedDict().items()), type(iter(OrderedDict())), itertools.chain, "
               "itertools.count, itertools.repeat,"
               " itertools.product, itertools.islice, itertools.accumulate, itertools.zip_longest,"
               " itertools.starmap, itertools.permutations, itertools.combinations,"
               " itertools.cycle, itertools.takewhile, itertools.dropwhile, itertools.pairwise,"
               " itertools.compress, itertools.filterfalse, type(iter(set())), "
               "type(iter(deque())), type(reversed(deque())), type(iter(b'')),"
               " itertools.combinations_with_replacement, itertools.groupby, itertools._grouper,"
               " itertools._tee, type(iter(int, 0)), type(iter(type('', (),"
               " {'__getitem__': 0})()))]",
               globals);
  Py_DECREF(globals);
  return types;
}

}  // namespace

bool is_enum_member(PyObject* object) {
  static PyTypeObject* const meta = [] {
    PyObject* module = import_module("enum");
    return reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module, "EnumMeta"));
  }();
  return PyType_IsSubtype(Py_TYPE(Py_TYPE(object)), meta) != 0;
}

bool is_identity_object(PyObject* object) {
  static const Types types = make_identity_types();
  if (types.contains(Py_TYPE(object)) || PyType_Check(object) || is_enum_member(object))
    return true;
  if (PyCFunction_Check(object)) {
    // A method of an instance is a new object each time; a function of a module is not.
    PyObject* self = PyCFunction_GET_SELF(object);
    return self == nullptr || PyModule_Check(self) || PyType_Check(self);
  }
  return is_torch_enum(object);
}

bool is_builtin_iterator(PyObject* object) {
  static const Types types = make_iterator_types();
  return types.contains(Py_TYPE(object));
}

bool is_iterator_of_iterators(PyObject* object) {
  static const Types simple = [] {
    Types types;
    PyObject* globals = PyDict_New();
    PyDict_SetItemString(globals, "__builtins__", import_module("builtins"));
    PyDict_SetItemString(globals, "deque", reinterpret_cast<PyObject*>(deque_type()));
    add_types_of(
        types,
        "[type(iter([])), type(iter(())), type(iter(range(0))), type(iter(range(2**70))),"
        " type(iter({})), type(iter({}.items())), type(iter({}.values())),"
        " type(reversed([])), type(reversed({})), type(reversed(())), type(iter('')),"
        " type(iter(set())), type(iter(deque())), type(reversed(deque())), type(iter(b''))]",
        globals);
    Py_DECREF(globals);
    return types;
  }();
  return is_builtin_iterator(object) && !simple.contains(Py_TYPE(object));
}

bool has_object_layout(PyTypeObject* type) {
  for (; type != nullptr && type != &PyBaseObject_Type; type = type->tp_base) {
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return false;
    // Types of C extensions have no Python __module__ of their own kind.
    if (reinterpret_cast<PyHeapTypeObject*>(type)->ht_module != nullptr) return false;
  }
  return type == &PyBaseObject_Type;
}

Ref slots_of(PyTypeObject* type) {
  Ref slots = Ref::steal(PyList_New(0));
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    const auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    const bool has_slots = (base->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 &&
                           reinterpret_cast<const PyHeapTypeObject*>(base)->ht_slots != nullptr;
    if (!has_slots) continue;
    Py_ssize_t position = 0;
    PyObject* name = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(base->tp_dict, &position, &name, &value) != 0) {
      if (Py_TYPE(value) == &PyMemberDescr_Type) PyList_Append(slots.get(), value);
    }
  }
  return slots;
}

namespace {

PyTypeObject* type_of_module(const char* module_name, const char* name) {
  const Ref module = Ref::steal(import_module(module_name));
  return reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), name));
}

}  // namespace

PyTypeObject* deque_type() {
  static PyTypeObject* const type = type_of_module("collections", "deque");
  return type;
}

PyTypeObject* defaultdict_type() {
  static PyTypeObject* const type = type_of_module("collections", "defaultdict");
  return type;
}

PyTypeObject* partial_type() {
  static PyTypeObject* const type = type_of_module("functools", "partial");
  return type;
}

bool is_struct_sequence(const PyTypeObject* type) {
  return type->tp_dict != nullptr && type->tp_base == &PyTuple_Type &&
         PyDict_GetItemString(type->tp_dict, "n_sequence_fields") != nullptr;
}

bool is_operator_getter(PyObject* object) {
  static const Types types = {type_of_module("operator", "itemgetter"),
                              type_of_module("operator", "attrgetter"),
                              type_of_module("operator", "methodcaller")};
  return types.contains(Py_TYPE(object));
}

bool is_builtin_dict(PyObject* object) {
  return PyDict_CheckExact(object) || Py_TYPE(object) == &PyODict_Type ||
         Py_TYPE(object) == defaultdict_type();
}

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// A subclass that reads its items as list and tuple do. Its slots do not tell: those of a subclass
// of list ask for the method in any case.
bool has_builtin_items(PyObject* object) {
  static PyObject* const names[] = {PyUnicode_InternFromString("__getitem__"),
                                    PyUnicode_InternFromString("__iter__")};
  PyTypeObject* base = PyTuple_Check(object) ? &PyTuple_Type : &PyList_Type;
  if (!is_sequence(object)) return false;
  return std::ranges::all_of(names, [&](PyObject* name) {
    return _PyType_Lookup(Py_TYPE(object), name) == _PyType_Lookup(base, name);
  });
}

bool is_container(PyObject* object) {
  return is_sequence(object) || PyDict_Check(object) || PyAnySet_Check(object);
}

PyObject* dict_of_view(PyObject* object) {
  const PyTypeObject* type = Py_TYPE(object);
  const bool is_view = type == &PyDictKeys_Type || type == &PyDictValues_Type ||
                       type == &PyDictItems_Type || type == &PyODictKeys_Type ||
                       type == &PyODictValues_Type || type == &PyODictItems_Type;
  if (!is_view) return nullptr;
  return reinterpret_cast<PyObject*>(reinterpret_cast<_PyDictViewObject*>(object)->dv_dict);
}

}  // namespace assay::capture
