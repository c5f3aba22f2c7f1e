// What is known of the objects that a program handles: where they come from, what is guarded, what
// they held.
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/dict_order.h"
#include "capture/raised.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

void Recorder::is_constant(PyObject* object) {
  if (is_scalar(object)) return;
  if (tracked_.find(object) != nullptr) {
    guard_identity(object);  // it also came from a source, which may hold another object next time
    return;
  }
  Tracked& tracked = tracked_.add(object, Tracked::Kind::constant);
  tracked.source = sources_.constant(object);
  tracked.is_touched = true;
}

void Recorder::found_fixed(PyObject* object) {
  if (!is_scalar(object)) arrived(object, sources_.constant(object));
}

void Recorder::guard_identity(PyObject* object) {
  Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr || tracked->kind != Tracked::Kind::source) return;
  tracked->source->checks.identical = Ref::borrow(object);
  tracked->kind = Tracked::Kind::constant;
  tracked->is_touched = true;
}

bool Recorder::arrived(PyObject* object, Source* source) {
  if (is_scalar(object)) {
    source->checks.value = Ref::borrow(object);
    return true;
  }
  Tracked* known = tracked_.find(object);
  if (known == nullptr) {
    Tracked& tracked = tracked_.add(object, Tracked::Kind::source);
    tracked.source = source;
    return true;
  }
  if (known->source == source) return true;
  if (known->kind == Tracked::Kind::constant) {
    source->checks.identical = Ref::borrow(object);
    return true;
  }
  if (known->kind != Tracked::Kind::source) return false;  // made here, found outside
  if (source->id > known->source->id) {
    source->checks.same_as = known->source;
  } else {
    known->source->checks.same_as = source;
  }
  return true;
}

bool Recorder::touch(PyObject* object) {
  if (is_scalar(object)) return true;
  Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr) return false;
  if (tracked->is_touched || tracked->kind != Tracked::Kind::source) return true;
  // What such a tensor says of itself is computed by Python code.
  if (is_tensor(object) && tensor_of(object).unsafeGetTensorImpl()->is_python_dispatch()) {
    return false;
  }
  tracked->is_touched = true;
  Checks& checks = tracked->source->checks;
  if (is_identity_object(object)) {
    checks.identical = Ref::borrow(object);
    tracked->kind = Tracked::Kind::constant;
    return true;
  }
  if (is_device(object)) {
    checks.value = Ref::borrow(object);
    return true;
  }
  checks.type = Ref::borrow(Py_TYPE(object));
  if (is_value_of_subclass(object)) checks.value = Ref::borrow(object);
  if (is_tensor(object)) {
    checks.tensor.emplace(tensor_of(object));
    tracked->varying = open_dimensions(*tracked, object);
    checks.tensor->open(tracked->varying);
  }
  return true;
}

void Recorder::read(const Operand& operand) {
  if (operand.origin != nullptr && is_recording()) {
    operand.origin->checks.value = Ref::borrow(operand.object);
  }
}

Ref values_of_slots(PyObject* object) {
  const Ref slots = slots_of(Py_TYPE(object));
  Ref values = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(slots.get()); ++i) {
    PyObject* descriptor = PyList_GET_ITEM(slots.get(), i);
    const Ref value = Ref::steal(
        Py_TYPE(descriptor)
            ->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
    if (!value) {
      PyErr_Clear();  // unset
      continue;
    }
    PyList_Append(values.get(), descriptor);
    PyList_Append(values.get(), value.get());
  }
  return values;
}

namespace {

// Another function with the names, texts and annotations that this one has now.
Ref like_function(PyObject* object) {
  const auto* function = reinterpret_cast<PyFunctionObject*>(object);
  Ref made = Ref::steal(PyFunction_NewWithQualName(function->func_code, function->func_globals,
                                                   function->func_qualname));
  auto* copy = reinterpret_cast<PyFunctionObject*>(made.get());
  Py_XSETREF(copy->func_name, Py_XNewRef(function->func_name));
  Py_XSETREF(copy->func_doc, Py_XNewRef(function->func_doc));
  Py_XSETREF(copy->func_module, Py_XNewRef(function->func_module));
  Py_XSETREF(copy->func_annotations, Py_XNewRef(function->func_annotations));
  return made;
}

}  // namespace

void Recorder::save_for_rollback(PyObject* object, bool always) {
  if (calls_as_one_ + calls_around_ > 0) {
    const Tracked* tracked = tracked_.find(object);
    const bool is_older = tracked == nullptr || tracked->order < one_call_start_;
    one_call_changes_older_ = one_call_changes_older_ || is_older;
  }
  if (inlined_.empty() && !always) return;  // a break forgets whole instructions of the root only
  for (const Saved& saved : saved_) {
    if (saved.object == object) return;
  }
  Ref contents;
  if (PyList_Check(object) || PyAnySet_Check(object) || Py_TYPE(object) == deque_type()) {
    contents = Ref::steal(PySequence_List(object));
  } else if (has_object_layout(Py_TYPE(object))) {
    contents = values_of_slots(object);
  } else if (PyDict_Check(object)) {
    contents = copy_in_order(object);
  } else if (PyFunction_Check(object)) {
    contents = like_function(object);
  } else if (PyCell_Check(object)) {
    contents = Ref::borrow(PyCell_GET(object) == nullptr ? Py_NotImplemented : PyCell_GET(object));
  } else if (PyIter_Check(object)) {
    contents = Ref::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
    PyErr_Clear();
    saved_.push_back({object, contents});
    // The iterators that it advances are saved with it.
    PyObject* args =
        contents && PyTuple_Check(contents.get()) && PyTuple_GET_SIZE(contents.get()) > 1
            ? PyTuple_GET_ITEM(contents.get(), 1)
            : nullptr;
    if (args == nullptr || !PyTuple_Check(args)) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* part = PyTuple_GET_ITEM(args, i);
      if (is_builtin_iterator(part) && PyIter_Check(part)) save_for_rollback(part, true);
    }
    return;
  }
  saved_.push_back({object, std::move(contents)});
}

bool Recorder::is_local(PyObject* object) {
  if (is_scalar(object) || tracked_.find(object) != nullptr) return true;
  if (is_identity_object(object)) {
    is_constant(object);  // types, dtypes, builtin functions: the same whenever this runs
    return true;
  }
  const auto items_are_known = [&](PyObject* const* items, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!is_local(items[i])) return false;
    }
    return true;
  };
  bool known = false;
  if (PyTuple_Check(object)) {
    known = items_are_known(&PyTuple_GET_ITEM(object, 0), PyTuple_GET_SIZE(object));
  } else if (PyList_CheckExact(object)) {
    known = PyList_GET_SIZE(object) == 0 ||
            items_are_known(&PyList_GET_ITEM(object, 0), PyList_GET_SIZE(object));
  } else if (is_builtin_dict(object)) {
    known = true;
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (known && PyDict_Next(object, &position, &key, &value) != 0) {
      known = is_local(key) && is_local(value) && use_as_key(key);
    }
  } else if (PyAnySet_CheckExact(object)) {
    known = true;
    PyObject* item = nullptr;
    Py_ssize_t position = 0;
    Py_hash_t hash = 0;
    while (known && _PySet_NextEntry(object, &position, &item, &hash) != 0) {
      known = is_local(item) && use_as_key(item);
    }
  } else if (Py_TYPE(object) == deque_type()) {
    const Ref items = Ref::steal(PySequence_List(object));
    known = items_are_known(&PyList_GET_ITEM(items.get(), 0), PyList_GET_SIZE(items.get()));
  } else if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    known = is_local(slice->start) && is_local(slice->stop) && is_local(slice->step);
  } else if (PyMethod_Check(object)) {
    known = is_local(PyMethod_GET_FUNCTION(object)) && is_local(PyMethod_GET_SELF(object));
  } else {
    known = Py_TYPE(object) == &PyRange_Type || is_builtin_iterator(object) || is_device(object);
  }
  if (!known) return false;
  tracked_.add(object, Tracked::Kind::local).is_known = true;
  return true;
}

void Recorder::track_local(PyObject* object) {
  if (tracked_.find(object) != nullptr) return;
  tracked_.add(object, Tracked::Kind::local).is_known = true;
}

bool Recorder::has_only_values(PyObject* container, int depth) {
  if (is_scalar(container)) return true;
  const bool is_dict = PyDict_CheckExact(container) != 0;
  if (depth > 20 || (!PyList_Check(container) && !PyTuple_Check(container) && !is_dict) ||
      !know_contents(container)) {
    return false;
  }
  if (is_dict) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(container, &position, &key, &value) != 0) {
      if (!is_scalar(key) || !has_only_values(value, depth + 1)) return false;
    }
    return true;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i) {
    if (!has_only_values(PySequence_Fast_GET_ITEM(container, i), depth + 1)) return false;
  }
  return true;
}

PyObject* Recorder::made(Activation& a, PyObject* object, const char* what) {
  if (object == nullptr || !is_recording() || is_local(object)) return object;
  if (!stop(a, std::string(what) + " gave an object of type '" + Py_TYPE(object)->tp_name +
                   "', which cannot be part of a graph")) {
    Py_DECREF(object);
    return nullptr;
  }
  return object;
}

PyObject* Recorder::watched(Activation& a, std::size_t before, PyObject* result) {
  if (!is_recording() || unexplained() == before) return result;
  const char* const why = "an operator ran inside a call that was not expected to run any";
  if (result == nullptr) {  // what the call raised is the program's
    const Ref error = take_raised();
    if (stop(a, why) && error) set_raised(error);
    return nullptr;
  }
  if (!stop(a, why)) Py_CLEAR(result);
  return result;
}

PyObject* Recorder::lookup_on_type(PyTypeObject* type, PyObject* name) {
  PyObject* found = _PyType_Lookup(type, name);
  const bool is_mutable = (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0;
  if (is_mutable && !was_written_to(type, name) &&
      looked_up_.emplace(reinterpret_cast<PyObject*>(type), name).second) {
    lookups_.push_back(
        {Ref::borrow(type), Ref::borrow(name), Ref::borrow(found), type->tp_version_tag});
  }
  return found;
}

int Recorder::is_subclass(PyTypeObject* type, PyObject* of, bool is_abstract) {
  const SuspendScope suspended(*this);  // registries are asked in Python
  const int answer = PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), of);
  const bool may_change = is_abstract || (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0;
  if (answer < 0 || !may_change) return answer;
  for (const SubclassCheck& known : subclass_checks_) {
    if (known.type.get() == reinterpret_cast<PyObject*>(type) && known.of.get() == of) {
      return answer;
    }
  }
  SubclassCheck check{Ref::borrow(type), Ref::borrow(of), answer == 1, is_abstract};
  check.holds();  // notes the versions
  subclass_checks_.push_back(std::move(check));
  return answer;
}

}  // namespace assay::capture
