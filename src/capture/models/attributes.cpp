// Attributes that are not simply in a __dict__.
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

PyObject* plainly(Recorder& recorder, Activation& a, PyObject* object, PyObject* name,
                  const std::string& why) {
  if (!recorder.stop(a, why)) return nullptr;
  return PyObject_GetAttr(object, name);
}

PyObject* function_attribute(Recorder& recorder, Activation& a, PyObject* function,
                             PyObject* name) {
  const std::string text = to_string(name);
  static PyObject* const dict_name = PyUnicode_InternFromString("__dict__");
  PyObject* on_type = _PyType_Lookup(Py_TYPE(function), name);
  if (on_type == nullptr) {
    // An attribute that somebody set: fn.__wrapped__ = ...
    PyObject* dict = recorder.dict_of(function);
    PyObject* found = dict == nullptr ? nullptr : recorder.read_item(dict, name);
    return found != nullptr ? Py_NewRef(found) : PyObject_GetAttr(function, name);
  }
  if (name == dict_name) {
    PyObject* dict = recorder.dict_of(function);
    return dict == nullptr ? PyObject_GetAttr(function, name) : Py_NewRef(dict);
  }
  recorder.guard_identity(function);
  PyObject* found = PyObject_GetAttr(function, name);
  if (found == nullptr || is_scalar(found)) return found;
  const bool is_fixed = text == "__code__" || text == "__globals__" || text == "__builtins__";
  if (!is_fixed && recorder.find(function)->kind == Tracked::Kind::local) {
    // Made here, and so are these: a dict of annotations is made when it is asked for.
    return recorder.made(a, found, "an attribute of a function");
  }
  if (PyMethod_Check(found) || text == "__get__" || text == "__call__") {
    return recorder.made(a, found, "an attribute of a function");
  }
  recorder.is_constant(found);
  return found;
}

PyObject* method_attribute(Recorder& recorder, Activation& a, PyObject* method, PyObject* name) {
  const std::string text = to_string(name);
  PyObject* self = PyMethod_GET_SELF(method);
  PyObject* function = PyMethod_GET_FUNCTION(method);
  const bool is_part = text == "__self__" || text == "__func__";
  if (recorder.find(self) == nullptr || recorder.find(function) == nullptr) {
    return plainly(recorder, a, method, name, "an attribute of a bound method");
  }
  if (is_part) return Py_NewRef(text == "__self__" ? self : function);
  return recorder.get_attribute(a, function, name);
}

// super().name: the next class in the MRO that has it.
PyObject* super_attribute(Recorder& recorder, Activation& a, PyObject* super, PyObject* name) {
  const Ref this_class = Ref::steal(PyObject_GetAttrString(super, "__thisclass__"));
  const Ref self = Ref::steal(PyObject_GetAttrString(super, "__self__"));
  const Ref self_class = Ref::steal(PyObject_GetAttrString(super, "__self_class__"));
  if (!this_class || !self || !self_class || self_class.get() == Py_None) {
    PyErr_Clear();
    return plainly(recorder, a, super, name, "super() without an object");
  }
  PyObject* mro = reinterpret_cast<PyTypeObject*>(self_class.get())->tp_mro;
  bool is_after = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    PyObject* type = PyTuple_GET_ITEM(mro, i);
    if (is_after) {
      PyObject* found = PyDict_GetItem(reinterpret_cast<PyTypeObject*>(type)->tp_dict, name);
      // Those without it too: they may get one.
      recorder.lookup_on_type(reinterpret_cast<PyTypeObject*>(type), name);
      if (found != nullptr) {
        const bool on_class = self.get() == self_class.get();
        return recorder.bind_found(a, found, on_class ? nullptr : self.get(), self_class.get(),
                                   name);
      }
    }
    is_after = is_after || type == this_class.get();
  }
  return PyObject_GetAttr(super, name);  // raises AttributeError
}

// The context that the C code of torch.autograd.Function makes; it is the gradient's node, too.
bool is_context(PyObject* object) {
  static PyTypeObject* const type = [] {
    const Ref module = Ref::steal(import_module("torch._C"));
    return reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), "_FunctionBase"));
  }();
  return PyObject_TypeCheck(object, type) != 0;
}

}  // namespace

PyObject* special_attribute(Recorder& recorder, Activation& a, PyObject* object, PyObject* name) {
  if (PyFunction_Check(object)) return function_attribute(recorder, a, object, name);
  if (PyMethod_Check(object)) return method_attribute(recorder, a, object, name);
  if (Py_TYPE(object) == &PySuper_Type) return super_attribute(recorder, a, object, name);
  if (PyCFunction_Check(object)) {
    PyObject* found = PyObject_GetAttr(object, name);
    return recorder.made(a, found, "an attribute of a builtin function");
  }
  const std::string text = to_string(name);
  if (text == "__class__") {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    recorder.is_constant(type);
    return Py_NewRef(type);
  }
  if (text == "__dict__") {
    PyObject* dict = recorder.dict_of(object);
    if (dict != nullptr) return Py_NewRef(dict);
  }
  if (recorder.is_computed_array(object)) return recorder.array_attribute(a, object, name);
  Tracked* tracked = recorder.find(object);
  PyObject* descriptor = recorder.lookup_on_type(Py_TYPE(object), name);
  if (Py_TYPE(object) == partial_type() && tracked->source != nullptr &&
      Py_TYPE(descriptor) == &PyMemberDescr_Type) {
    // __setstate__ can change what even a constant one holds.
    return recorder.read_member(a, object, descriptor, name);
  }
  if (tracked->source == nullptr || tracked->kind == Tracked::Kind::constant) {
    // Made here, or fixed: its C attributes are what they are.
    PyObject* found = PyObject_GenericGetAttr(object, name);
    if (found == nullptr || recorder.find(found) != nullptr) return found;
    if (Py_TYPE(found) == &PyDictProxy_Type && tracked->kind == Tracked::Kind::constant) {
      recorder.is_constant(found);  // a read-only table of something that does not change
      return found;
    }
    return recorder.made(a, found, "an attribute");
  }
  const bool is_of_deque =
      Py_TYPE(descriptor) == &PyGetSetDescr_Type && Py_TYPE(object) == deque_type();
  if (Py_TYPE(descriptor) == &PyMemberDescr_Type || is_of_deque) {
    // A slot of __slots__, or a read-only member of a C type.
    return recorder.read_member(a, object, descriptor, name);
  }
  if (!recorder.stop(a, "the attribute '" + text + "' of an object of type '" +
                            Py_TYPE(object)->tp_name + "'")) {
    return nullptr;
  }
  return PyObject_GenericGetAttr(object, name);
}

bool set_special_attribute(Recorder& recorder, Activation& a, PyObject* object, PyObject* name,
                           PyObject* value) {
  const auto plainly_set = [&](const char* why) {
    if (!recorder.stop(a, why)) return false;
    return PyObject_SetAttr(object, name, value) == 0;
  };
  if (PyModule_CheckExact(object)) {
    PyObject* dict = PyModule_GetDict(object);
    recorder.is_constant(dict);
    if (value != nullptr && !recorder.touch(value))
      return plainly_set("an unknown object is stored");
    if (PyObject_SetAttr(object, name, value) < 0) return false;
    recorder.changed_item(dict, name, value);
    return true;
  }
  if (PyType_Check(object)) {
    if (value != nullptr && !recorder.touch(value)) {
      return plainly_set("an unknown object is stored");
    }
    if (!recorder.can_write_to_class(object, name)) {
      return plainly_set("an attribute of a class is set");
    }
    return recorder.write_to_class(object, name, value);
  }
  // What somebody notes on a tensor; the tensor's own attributes change what it is.
  if (recorder.lookup_on_type(Py_TYPE(object), name) != nullptr || !is_plain_tensor(object)) {
    return plainly_set("an attribute of a tensor is set");
  }
  if (value != nullptr && !recorder.touch(value)) return plainly_set("an unknown object is stored");
  return set_plain_attribute(recorder, a, object, name, value);
}

bool set_plain_attribute(Recorder& recorder, Activation& a, PyObject* object, PyObject* name,
                         PyObject* value) {
  const auto plainly_set = [&](const std::string& why) {
    if (!recorder.stop(a, why)) return false;
    return PyObject_GenericSetAttr(object, name, value) == 0;
  };
  PyObject* descriptor = recorder.lookup_on_type(Py_TYPE(object), name);
  if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_set != nullptr) {
    // A name or text of a new function, as functools.wraps sets them: recipes copy these.
    const std::string text = PyFunction_Check(object) ? to_string(name) : "";
    const bool is_text =
        text == "__name__" || text == "__qualname__" || text == "__doc__" || text == "__module__";
    const bool is_kept = (is_text && value != nullptr && is_scalar(value)) ||
                         (text == "__annotations__" && value != nullptr);
    if (is_kept && recorder.find(object)->kind == Tracked::Kind::local &&
        recorder.before_change(object)) {
      return PyObject_GenericSetAttr(object, name, value) == 0;
    }
    if (Py_TYPE(descriptor) == &PyProperty_Type) {
      const Ref setter =
          Ref::steal(PyObject_GetAttrString(descriptor, value == nullptr ? "fdel" : "fset"));
      if (!setter || setter.get() == Py_None) {
        PyErr_Clear();
        return PyObject_GenericSetAttr(object, name, value) == 0;  // raises
      }
      recorder.is_constant(setter.get());
      PyObject* args[] = {nullptr, object, value};
      const Ref result = Ref::steal(
          recorder.call_object(a, {setter.get(), args + 1, value == nullptr ? 1U : 2U, nullptr}));
      return static_cast<bool>(result);
    }
    if (Py_TYPE(descriptor) == &PyMemberDescr_Type) {
      return recorder.write_member(a, object, descriptor, name, value);
    }
    // What an exception was raised in, and where: as contextlib sets them.
    if (PyExceptionInstance_Check(object) && Py_TYPE(descriptor) == &PyGetSetDescr_Type &&
        recorder.find(object)->kind == Tracked::Kind::local && value != nullptr &&
        (value == Py_None || PyTraceBack_Check(value) || PyExceptionInstance_Check(value))) {
      return PyObject_GenericSetAttr(object, name, value) == 0;
    }
    // What the context of a torch.autograd.Function that is being called keeps for backward.
    if (is_context(object) && recorder.find(object)->source == nullptr && value != nullptr &&
        PyUnicode_CompareWithASCIIString(name, "dirty_tensors") != 0) {
      return PyObject_GenericSetAttr(object, name, value) == 0;
    }
    // A descriptor written in Python.
    const char* method = value == nullptr ? "__delete__" : "__set__";
    if (recorder.is_python_method_of(Py_TYPE(descriptor), method)) {
      recorder.is_constant(descriptor);
      const Ref result = Ref::steal(
          value == nullptr ? recorder.call_method(a, descriptor, method, {object})
                           : recorder.call_method(a, descriptor, method, {object, value}));
      return static_cast<bool>(result);
    }
    return plainly_set("the attribute '" + to_string(name) + "' is set through a descriptor");
  }
  PyObject* dict = recorder.dict_of(object);
  if (dict == nullptr) return plainly_set("an attribute of an object without __dict__ is set");
  if (recorder.find(dict)->source == nullptr) {
    if (!recorder.before_change(dict)) return plainly_set("an object is changed");
  } else if (value == nullptr) {
    recorder.read_item(dict, name);
  }
  recorder.before_item_change(dict);
  if (PyObject_GenericSetAttr(object, name, value) < 0) return false;
  recorder.changed_item(dict, name, value);
  return true;
}

}  // namespace assay::capture
