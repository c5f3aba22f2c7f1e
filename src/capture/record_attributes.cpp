// Attributes. Access follows the MRO by hand, so that properties,
// __getattr__ and descriptors are inlined or modelled, and never run unseen.
#include <algorithm>
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

bool is_data_descriptor(PyObject* object) { return Py_TYPE(object)->tp_descr_set != nullptr; }

// torch.ops, torch.ops.aten.
bool is_operator_namespace(PyObject* module) {
  static PyObject* const ops = import_module("torch._ops");
  static PyObject* const types[] = {PyObject_GetAttrString(ops, "_Ops"),
                                    PyObject_GetAttrString(ops, "_OpNamespace")};
  PyErr_Clear();
  return std::ranges::find(types, reinterpret_cast<PyObject*>(Py_TYPE(module))) != std::end(types);
}

}  // namespace

// ---- Dicts: globals, module and instance attributes ----

PyObject* Recorder::dict_of(PyObject* object) {
  PyObject* dict = PyObject_GenericGetDict(object, nullptr);
  if (dict == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  Py_DECREF(dict);  // the object keeps it
  Tracked* owner = tracked_.find(object);
  if (tracked_.find(dict) != nullptr) {
    // Reached by another way too: obj.__dict__ in a variable.
    if (owner != nullptr && owner->source != nullptr && !owner->has_known_dict) {
      owner->has_known_dict = true;
      arrived(dict, sources_.get(Access::dict, owner->source, nullptr));
    }
    return dict;
  }
  if (owner == nullptr) return nullptr;
  owner->has_known_dict = true;
  if (owner->source != nullptr) {
    Source* source = sources_.get(Access::dict, owner->source, nullptr);
    Tracked& tracked = tracked_.add(dict, Tracked::Kind::source);
    tracked.source = source;
    tracked.is_touched = true;
  } else {
    tracked_.add(dict, Tracked::Kind::local).is_known = true;
  }
  return dict;
}

PyObject* Recorder::read_item(PyObject* dict, PyObject* key, bool opens) {
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (value == nullptr && PyErr_Occurred() != nullptr) return nullptr;
  Tracked* tracked = tracked_.find(dict);
  if (tracked == nullptr || tracked->source == nullptr || tracked->is_known) return value;
  if (!tracked->known_keys) tracked->known_keys = Ref::steal(PySet_New(nullptr));
  const int is_known = PySet_Contains(tracked->known_keys.get(), key);
  if (is_known != 0) return value;
  PySet_Add(tracked->known_keys.get(), key);
  Source* source = sources_.get(Access::item, tracked->source, key);
  if (value == nullptr) {
    source->checks.absent = true;
  } else {
    source->checks.present = true;  // also where only that matters: `in`, hasattr()
    PyObject* number = opens && PyDict_CheckExact(dict) ? open_number(value, *source) : nullptr;
    if (number == nullptr) {
      arrived(value, source);
      return value;
    }
    // The same number, as an object that can be followed.
    const int result = PyDict_SetItem(dict, key, number);
    Py_DECREF(number);
    return result < 0 ? nullptr : number;  // the dict keeps it
  }
  return value;
}

void Recorder::changed_item(PyObject* dict, PyObject* key, PyObject* value) {
  Tracked* tracked = tracked_.find(dict);
  tracked->is_mutated = true;
  if (tracked->source == nullptr) return;
  if (!tracked->known_keys) tracked->known_keys = Ref::steal(PySet_New(nullptr));
  PySet_Add(tracked->known_keys.get(), key);
  effects_.push_back({value == nullptr ? Effect::Kind::delete_item : Effect::Kind::set_item,
                      Ref::borrow(dict), Ref::borrow(key), Ref::borrow(value)});
}

// ---- Reading attributes ----

PyObject* Recorder::load_attr(Activation& a, Operand owner, PyObject* name) {
  if (!is_recording()) return Operations::load_attr(a, owner, name);
  read(owner);
  return get_attribute(a, owner.object, name);
}

PyObject* Recorder::load_method(Activation& a, Operand owner, PyObject* name, bool& is_method) {
  if (!is_recording()) return Operations::load_method(a, owner, name, is_method);
  read(owner);
  PyObject* object = owner.object;
  is_method = false;
  PyTypeObject* type = Py_TYPE(object);
  const bool is_plain = type->tp_getattro == PyObject_GenericGetAttr || is_tensor(object);
  if (is_plain && touch(object)) {
    PyObject* found = lookup_on_type(type, name);
    if (found != nullptr && PyType_HasFeature(Py_TYPE(found), Py_TPFLAGS_METHOD_DESCRIPTOR)) {
      PyObject* dict = is_scalar(object) ? nullptr : dict_of(object);
      if (dict == nullptr || read_item(dict, name) == nullptr) {
        is_constant(found);
        is_method = true;
        return Py_NewRef(found);
      }
    }
  }
  return get_attribute(a, object, name);
}

PyObject* Recorder::get_attribute(Activation& a, PyObject* object, PyObject* name) {
  if (is_scalar(object)) {
    PyObject* found = PyObject_GetAttr(object, name);
    if (found != nullptr && PyCFunction_Check(found) && tracked_.find(found) == nullptr) {
      tracked_.add(found, Tracked::Kind::local).is_known = true;
      return found;
    }
    use_numbers(object);
    return made(a, found, "an attribute");
  }
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return PyObject_GetAttr(object, name);
  };
  if (!touch(object)) {
    return plainly(std::string("an attribute of an object that is not known (") +
                   Py_TYPE(object)->tp_name + ")");
  }
  if (is_tensor(object)) return tensor_attribute(a, object, name);
  if (PyModule_CheckExact(object)) return module_attribute(a, object, name);
  if (PyType_Check(object)) return type_attribute(a, object, name);
  return instance_attribute(a, object, name);
}

PyObject* Recorder::module_attribute(Activation& a, PyObject* module, PyObject* name) {
  PyObject* dict = PyModule_GetDict(module);
  if (tracked_.find(dict) == nullptr) is_constant(dict);
  PyObject* found = read_item(dict, name);
  if (found != nullptr) return Py_NewRef(found);
  if (PyErr_Occurred() != nullptr) return nullptr;
  // __name__ and the like, or the module's __getattr__ (lazy imports).
  PyObject* result = PyObject_GetAttr(module, name);
  if (result != nullptr && !is_scalar(result) && !is_identity_object(result)) {
    if (!stop(a, "a module's __getattr__")) {
      Py_DECREF(result);
      return nullptr;
    }
  }
  return result;
}

// torch.ops and its namespaces, torch.backends.mha: classes derived from a module's.
PyObject* Recorder::module_like_attribute(Activation& a, PyObject* module, PyObject* name) {
  static PyObject* const getattr = interned("__getattr__");
  const auto plainly = [&]() -> PyObject* {
    if (!stop(a, std::string("attributes of '") + Py_TYPE(module)->tp_name +
                     "' objects are not modelled")) {
      return nullptr;
    }
    return PyObject_GetAttr(module, name);
  };
  if (PyObject* on_type = lookup_on_type(Py_TYPE(module), name)) {
    // torch.backends.cudnn.enabled and its like are descriptors in Python.
    const bool is_python = PyFunction_Check(on_type) || Py_TYPE(on_type) == &PyProperty_Type ||
                           is_python_method_of(Py_TYPE(on_type), "__get__");
    if (!is_python) return plainly();
    return bind_descriptor(a, on_type, module, reinterpret_cast<PyObject*>(Py_TYPE(module)), name);
  }
  if (is_operator_namespace(module)) {
    // What is asked for the first time is loaded then, and kept in the module's dict.
    const SuspendScope suspended(*this);
    const Ref loaded = Ref::steal(PyObject_GetAttr(module, name));
    if (!loaded) return nullptr;
  }
  PyObject* dict = dict_of(module);
  if (dict == nullptr) return plainly();
  PyObject* found = read_item(dict, name);
  if (found != nullptr) return Py_NewRef(found);
  if (PyErr_Occurred() != nullptr) return nullptr;
  PyObject* fallback = lookup_on_type(Py_TYPE(module), getattr);
  if (fallback == nullptr || !PyFunction_Check(fallback)) return plainly();
  is_constant(fallback);
  PyObject* args[] = {nullptr, module, name};
  return call_object(a, {fallback, args + 1, 2, nullptr});
}

PyObject* Recorder::type_attribute(Activation& a, PyObject* type, PyObject* name) {
  auto* owner = reinterpret_cast<PyTypeObject*>(type);
  PyTypeObject* meta = Py_TYPE(type);
  // A metaclass's __getattr__ is asked only for what is not found.
  static PyObject* const getattribute = interned("__getattribute__");
  const bool has_own_getattr =
      meta->tp_getattro != PyType_Type.tp_getattro &&
      lookup_on_type(meta, getattribute) != _PyType_Lookup(&PyType_Type, getattribute);
  PyObject* on_meta = lookup_on_type(meta, name);
  PyObject* found = lookup_on_type(owner, name);
  const bool is_special = on_meta != nullptr && is_data_descriptor(on_meta);
  if (found != nullptr && !has_own_getattr && !is_special) {
    PyTypeObject* kind = Py_TYPE(found);
    if (kind->tp_descr_get == nullptr) {
      // A plain value in a class.
      if (!was_written_to(owner, name)) found_fixed(found);
      return Py_NewRef(found);
    }
    if (PyFunction_Check(found) || kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type ||
        kind == &PyProperty_Type || kind == &PyMemberDescr_Type || kind == &PyGetSetDescr_Type) {
      is_constant(found);
      return Py_NewRef(found);
    }
    if (kind == &PyStaticMethod_Type || kind == &PyClassMethod_Type ||
        kind == &PyClassMethodDescr_Type) {
      return bind_descriptor(a, found, nullptr, type, name);
    }
  }
  if (is_special && Py_TYPE(on_meta) == &PyProperty_Type) {
    return bind_descriptor(a, on_meta, type, reinterpret_cast<PyObject*>(meta), name);
  }
  if (is_special && Py_TYPE(on_meta) == &PyGetSetDescr_Type) {
    const Tracked* tracked = tracked_.find(type);
    PyObject* value = PyObject_GetAttr(type, name);
    if (value != nullptr && is_scalar(value) && tracked->source != nullptr) {
      arrived(value, sources_.get(Access::member, tracked->source, on_meta));
    }
    if (value == nullptr || is_scalar(value)) return value;
    Py_DECREF(value);
  }
  // type's own getsets (__name__, __mro__, __dict__, ...) and metaclasses.
  PyObject* result = PyObject_GetAttr(type, name);
  if (result == nullptr) return nullptr;
  if (is_special && mapping_of_proxy(result) == owner->tp_dict && is_recording()) {
    is_constant(type);
    found_fixed(owner->tp_dict);
    track_local(result);
    return result;
  }
  const bool is_from_c = is_special && (Py_TYPE(on_meta) == &PyGetSetDescr_Type ||
                                        Py_TYPE(on_meta) == &PyMemberDescr_Type);
  if (is_from_c && is_recording() && (owner->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0) {
    // __name__, __bases__ and the like can be assigned to.
    Source* source = sources_.get(Access::member, sources_.constant(type), on_meta);
    if (is_scalar(result)) {
      source->checks.value = Ref::borrow(result);
    } else if (PyTuple_CheckExact(result) || PyType_Check(result)) {
      source->checks.identical = Ref::borrow(result);
    }
  }
  if (is_scalar(result)) return result;
  if (is_identity_object(result)) {
    is_constant(result);
    return result;
  }
  if (PyTuple_CheckExact(result)) {
    is_constant(result);
    know_contents(result);
    return result;
  }
  if (PyMethod_Check(result)) {
    is_constant(PyMethod_GET_FUNCTION(result));
    is_constant(PyMethod_GET_SELF(result));
  }
  // Members of an Enum are found by its metaclass; they do not change.
  if (Py_TYPE(result) == owner) {
    is_constant(result);
    return result;
  }
  return made(a, result, "an attribute of a class");
}

PyObject* Recorder::bind_descriptor(Activation& a, PyObject* descriptor, PyObject* object,
                                    PyObject* type, PyObject* name) {
  PyTypeObject* kind = Py_TYPE(descriptor);
  if (PyFunction_Check(descriptor) && object != nullptr) {
    is_constant(descriptor);
    PyObject* method = PyMethod_New(descriptor, object);
    if (method != nullptr) tracked_.add(method, Tracked::Kind::local).is_known = true;
    return method;
  }
  if (kind == &PyStaticMethod_Type || kind == &PyClassMethod_Type) {
    PyObject* function = kind->tp_descr_get(descriptor, object, type);
    if (function == nullptr) return nullptr;
    if (PyMethod_Check(function)) {
      is_constant(PyMethod_GET_FUNCTION(function));
      is_constant(PyMethod_GET_SELF(function));
      tracked_.add(function, Tracked::Kind::local).is_known = true;
    } else {
      is_constant(function);
    }
    return function;
  }
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type ||
      kind == &PyClassMethodDescr_Type) {
    PyObject* bound = kind->tp_descr_get(descriptor, object, type);
    if (bound == nullptr) return nullptr;
    if (tracked_.find(bound) == nullptr) tracked_.add(bound, Tracked::Kind::local).is_known = true;
    return bound;
  }
  if (kind == &PyProperty_Type && object != nullptr) {
    PyObject* getter = PyObject_GetAttrString(descriptor, "fget");
    if (getter == nullptr || getter == Py_None) {
      Py_XDECREF(getter);
      return PyObject_GenericGetAttr(object, name);
    }
    is_constant(getter);
    PyObject* args[] = {nullptr, object};
    PyObject* result = call_object(a, {getter, args + 1, 1, nullptr});
    Py_DECREF(getter);
    return result;
  }
  static PyTypeObject* const field_type = [] {
    PyObject* module = import_module("_collections");
    return reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module, "_tuplegetter"));
  }();
  if (kind == field_type) {  // a field of a namedtuple
    if (object == nullptr) {
      is_constant(descriptor);
      return Py_NewRef(descriptor);
    }
    if (PyTuple_Check(object) && know_contents(object)) {
      return made(a, kind->tp_descr_get(descriptor, object, type), "a field of a namedtuple");
    }
  }
  // A descriptor written in Python: cached_property and its like.
  static PyObject* const get_name = interned("__get__");
  PyObject* get = lookup_on_type(kind, get_name);
  if (get != nullptr && PyFunction_Check(get)) {
    is_constant(descriptor);
    is_constant(get);
    PyObject* args[] = {nullptr, descriptor, object == nullptr ? Py_None : object, type};
    return call_object(a, {get, args + 1, 3, nullptr});
  }
  if (!stop(a, "a descriptor of type '" + std::string(kind->tp_name) + "' is not modelled")) {
    return nullptr;
  }
  return object == nullptr ? PyObject_GetAttr(type, name) : PyObject_GenericGetAttr(object, name);
}

PyObject* Recorder::module_getattr(PyObject* module, PyObject* name, bool& found) {
  static PyObject* const tables[] = {interned("_parameters"), interned("_buffers"),
                                     interned("_modules")};
  found = false;
  PyObject* dict = dict_of(module);
  if (dict == nullptr) return nullptr;
  for (PyObject* table_name : tables) {
    PyObject* table = read_item(dict, table_name);
    if (table == nullptr || !PyDict_CheckExact(table)) continue;
    touch(table);
    PyObject* value = read_item(table, name);
    if (value == nullptr) continue;
    found = true;
    return value;
  }
  return nullptr;
}

PyObject* Recorder::bind_found(Activation& a, PyObject* found, PyObject* object, PyObject* type,
                               PyObject* name) {
  if (Py_TYPE(found)->tp_descr_get != nullptr) {
    if (object == nullptr && (PyFunction_Check(found) || Py_TYPE(found) == &PyMethodDescr_Type ||
                              Py_TYPE(found) == &PyWrapperDescr_Type)) {
      is_constant(found);
      return Py_NewRef(found);
    }
    return bind_descriptor(a, found, object, type, name);
  }
  if (!was_written_to(reinterpret_cast<PyTypeObject*>(type), name)) found_fixed(found);
  return Py_NewRef(found);
}

PyObject* Recorder::read_member(Activation& a, PyObject* object, PyObject* descriptor,
                                PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(object, name);
  const Member member{object, descriptor};
  if (std::ranges::find(known_members_, member) != known_members_.end()) return found;
  known_members_.push_back(member);
  Source* source = sources_.get(Access::member, tracked_.find(object)->source, descriptor);
  if (found == nullptr) {
    source->checks.absent = true;  // an unset slot: AttributeError
    return nullptr;
  }
  source->checks.present = true;
  if (!arrived(found, source)) return made(a, found, "an attribute");
  return found;
}

PyObject* Recorder::instance_attribute(Activation& a, PyObject* object, PyObject* name) {
  static PyObject* const getattribute = interned("__getattribute__");
  static PyObject* const object_getattribute =
      PyDict_GetItem(PyBaseObject_Type.tp_dict, getattribute);
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_getattro != PyObject_GenericGetAttr) {
    PyObject* custom = lookup_on_type(type, getattribute);
    if (custom != nullptr && PyFunction_Check(custom)) {
      is_constant(custom);
      PyObject* args[] = {nullptr, object, name};
      PyObject* found = call_object(a, {custom, args + 1, 2, nullptr});
      return found != nullptr ? found : after_attribute_error(a, object, name);
    }
    if (PyMethod_Check(object) || Py_TYPE(object) == &PySuper_Type) {
      return special_attribute(*this, a, object, name);
    }
    if (PyModule_Check(object)) return module_like_attribute(a, object, name);
    if (custom != object_getattribute && is_identity_object(object)) {
      return made(a, PyObject_GetAttr(object, name), "an attribute");
    }
    if (custom != object_getattribute) {
      if (!stop(a, std::string("attributes of '") + type->tp_name + "' objects are not modelled")) {
        return nullptr;
      }
      return PyObject_GetAttr(object, name);
    }
  }
  bool is_missing = false;
  PyObject* found = find_attribute(a, object, name, is_missing);
  if (is_missing) return fallback_attribute(a, object, name);
  return found != nullptr ? found : after_attribute_error(a, object, name);
}

PyObject* Recorder::find_attribute(Activation& a, PyObject* object, PyObject* name,
                                   bool& is_missing) {
  PyTypeObject* type = Py_TYPE(object);
  is_missing = false;
  if (PyFunction_Check(object) || PyCFunction_Check(object)) {
    return special_attribute(*this, a, object, name);
  }
  PyObject* descriptor = lookup_on_type(type, name);
  PyObject* type_object = reinterpret_cast<PyObject*>(type);
  if (descriptor != nullptr && is_data_descriptor(descriptor)) {
    PyTypeObject* kind = Py_TYPE(descriptor);
    if (kind == &PyGetSetDescr_Type || kind == &PyMemberDescr_Type) {
      return special_attribute(*this, a, object, name);
    }
    const bool is_only_set = kind->tp_descr_get == nullptr;  // it does not stand before __dict__
    PyObject* dict = is_only_set ? dict_of(object) : nullptr;
    PyObject* found = dict != nullptr ? read_item(dict, name, true) : nullptr;
    if (found != nullptr) return Py_NewRef(found);
    if (PyErr_Occurred() != nullptr) return nullptr;
    return bind_descriptor(a, descriptor, object, type_object, name);
  }
  if (PyObject* dict = dict_of(object)) {
    PyObject* found = read_item(dict, name, true);
    if (found != nullptr) return Py_NewRef(found);
    if (PyErr_Occurred() != nullptr) return nullptr;
  }
  if (descriptor != nullptr) return bind_found(a, descriptor, object, type_object, name);
  is_missing = true;
  return nullptr;
}

PyObject* Recorder::generic_attribute(Activation& a, PyObject* object, PyObject* name) {
  bool is_missing = false;
  PyObject* found = find_attribute(a, object, name, is_missing);
  return is_missing ? PyObject_GenericGetAttr(object, name) : found;  // raises AttributeError
}

}  // namespace assay::capture
