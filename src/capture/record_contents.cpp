// What is in containers: known and guarded before it is used, noted when it is changed.
#include <algorithm>
#include <string>

#include "capture/arrays.h"
#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/dict_order.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

bool Recorder::know_contents(PyObject* container, bool opens) {
  if (is_scalar(container)) return true;
  if (!touch(container)) return false;
  Tracked* tracked = tracked_.find(container);
  if (tracked->is_known || tracked->kind == Tracked::Kind::local) return true;
  if (tracked->source == nullptr) return false;
  Source* source = tracked->source;
  if (is_sequence(container)) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(container) - tracked->appended;
    source->checks.length = size;
    for (Py_ssize_t i = 0; i < size; ++i) {
      Source* element = sources_.get(Access::element, source, nullptr, i);
      PyObject** item = &PySequence_Fast_ITEMS(container)[i];
      PyObject* number = opens && (tracked->is_fresh || PyList_CheckExact(container))
                             ? open_number(*item, *element)
                             : nullptr;
      if (number != nullptr) {
        Py_SETREF(*item, number);
      } else if (!arrived(*item, element)) {
        return false;
      }
    }
    return tracked->is_known = true;
  }
  if (PyDict_Check(container)) return tracked->is_known = know_items(container, *tracked, opens);
  if (PyAnySet_Check(container)) {
    PyObject* item = nullptr;
    Py_ssize_t position = 0;
    Py_hash_t hash = 0;
    while (_PySet_NextEntry(container, &position, &item, &hash) != 0) {
      if (!is_scalar(item) && !is_identity_object(item)) return false;
      is_constant(item);
    }
    source->checks.value = Ref::steal(PyFrozenSet_New(container));
    return tracked->is_known = true;
  }
  if (PySlice_Check(container) || Py_TYPE(container) == &PyRange_Type) {
    source->checks.value = Ref::borrow(container);
    return tracked->is_known = true;
  }
  if (Py_TYPE(container) == deque_type()) {
    static PyObject* const maximum = PyDict_GetItemString(deque_type()->tp_dict, "maxlen");
    const Ref length = Ref::steal(PyObject_GetAttrString(container, "maxlen"));
    arrived(length.get(), sources_.get(Access::member, source, maximum));
    const Ref items = Ref::steal(PySequence_List(container));
    source->checks.length = PyList_GET_SIZE(items.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      if (!arrived(PyList_GET_ITEM(items.get(), i),
                   sources_.get(Access::element, source, nullptr, i))) {
        return false;
      }
    }
    return tracked->is_known = true;
  }
  return false;
}

bool Recorder::know_items(PyObject* dict, Tracked& tracked, bool opens) {
  // Of a dict that was changed here, the keys that it had; what was set since is known.
  if (tracked.is_mutated && !tracked.first_keys) return false;
  const Ref keys = tracked.is_mutated ? tracked.first_keys : keys_in_order(dict);
  if (!keys) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    is_constant(key);  // keys that are objects are compared by identity
    if (tracked.known_keys) {
      const int is_known = PySet_Contains(tracked.known_keys.get(), key);
      if (is_known < 0) return false;
      if (is_known == 1) continue;
    }
    PyObject* value = PyDict_GetItemWithError(dict, key);
    if (value == nullptr) return false;
    Source* item = sources_.get(Access::item, tracked.source, key);
    if (const Ref number =
            Ref::steal(opens && PyDict_CheckExact(dict) ? open_number(value, *item) : nullptr)) {
      if (PyDict_SetItem(dict, key, number.get()) < 0) return false;
    } else if (!arrived(value, item)) {
      return false;
    }
  }
  tracked.source->checks.keys = Ref::steal(PyList_AsTuple(keys.get()));
  return true;
}

void Recorder::before_item_change(PyObject* dict) {
  constexpr Py_ssize_t kMost = 1000;  // larger ones are not looked at as a whole
  Tracked* tracked = tracked_.find(dict);
  if (calls_as_one_ > 0 && tracked != nullptr && tracked->source != nullptr &&
      std::ranges::find(one_call_dicts_, dict, &DictBefore::dict) == one_call_dicts_.end()) {
    one_call_dicts_.push_back({dict, Ref::steal(PyDict_Copy(dict))});
  }
  if (tracked == nullptr || tracked->source == nullptr || tracked->is_known ||
      tracked->is_mutated || PyDict_GET_SIZE(dict) > kMost) {
    return;
  }
  tracked->first_keys = keys_in_order(dict);
}

bool Recorder::know_sortable(PyObject* object) {
  if (is_scalar(object)) return true;
  if (!touch(object) || is_tensor(object) || is_computed_array(object)) return false;
  return !is_container(object) || know_all(object);
}

bool Recorder::know_comparable(PyObject* one, PyObject* other) {
  if (one == other) return true;  // the same object, which is guarded
  if (!know_sortable(one) || !know_sortable(other)) return false;
  const Tracked* left = tracked_.find(one);
  const Tracked* right = tracked_.find(other);
  if (left != nullptr && right != nullptr && left->source != nullptr && right->source != nullptr &&
      Py_TYPE(one) == Py_TYPE(other)) {
    distinct_.emplace_back(left->source, right->source);
  }
  return true;
}

bool Recorder::know_all(PyObject* object, int depth) {
  if (is_scalar(object)) return true;
  if (depth > 20 || !touch(object)) return false;
  if (is_tensor(object)) return is_plain_tensor(object);
  if (is_computed_array(object)) return false;
  if (tracked_.find(object)->kind == Tracked::Kind::constant &&
      (is_identity_object(object) || is_array_scalar(object) || describes_arrays(object))) {
    return true;
  }
  if (is_device(object) || is_value_of_subclass(object)) return true;
  const bool is_deque = Py_TYPE(object) == deque_type();
  if (!is_container(object) && !PySlice_Check(object) && Py_TYPE(object) != &PyRange_Type &&
      !is_deque) {
    return false;
  }
  if (!know_contents(object)) return false;
  if (is_deque) {
    const Ref items = Ref::steal(PySequence_List(object));
    for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items.get()); ++i) {
      if (!know_all(PyList_GET_ITEM(items.get(), i), depth + 1)) return false;
    }
    return static_cast<bool>(items);
  }
  if (is_sequence(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      if (!know_all(PySequence_Fast_GET_ITEM(object, i), depth + 1)) return false;
    }
  } else if (PyDict_Check(object)) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(object, &position, &key, &value) != 0) {
      if (!know_all(value, depth + 1)) return false;
    }
  } else if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    return know_all(slice->start, depth + 1) && know_all(slice->stop, depth + 1) &&
           know_all(slice->step, depth + 1);
  }
  return true;
}

// ---- Changing ----

bool Recorder::before_change(PyObject* object) {
  if (!touch(object)) return false;
  Tracked* tracked = tracked_.find(object);
  if (tracked->source == nullptr) {
    save_for_rollback(object);
    return true;
  }
  if (!know_contents(object)) return false;
  tracked->is_mutated = true;
  return true;
}

void Recorder::changed_contents(PyObject* container) {
  Tracked* tracked = tracked_.find(container);
  tracked->is_mutated = true;
  if (tracked->source == nullptr) return;
  Ref snapshot =
      PyDict_Check(container) ? copy_in_order(container) : Ref::steal(PySequence_List(container));
  tracked_.add(snapshot.get(), Tracked::Kind::local).is_known = true;
  if (effects_.size() > checkpoint_.effects && effects_.back().kind == Effect::Kind::replace &&
      effects_.back().target.get() == container) {
    effects_.back().value = std::move(snapshot);
    return;
  }
  effects_.push_back({Effect::Kind::replace, Ref::borrow(container), Ref(), std::move(snapshot)});
}

void Recorder::called_method(const Call& call) {
  Tracked* tracked = tracked_.find(call.args[0]);
  tracked->is_mutated = true;
  if (tracked->source == nullptr) return;
  const auto count = static_cast<Py_ssize_t>(call.count) - 1;
  Ref arguments = Ref::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    // Containers as they are now: they may change later.
    PyObject* argument = call.args[i + 1];
    const bool is_copied = !PyTuple_CheckExact(argument) && is_container(argument);
    PyObject* given = is_copied ? PySequence_Tuple(argument) : Py_NewRef(argument);
    PyTuple_SET_ITEM(arguments.get(), i, given);
    if (is_copied) track_local(given);
  }
  track_local(arguments.get());
  is_constant(call.callable);
  effects_.push_back({Effect::Kind::call_method, Ref::borrow(call.args[0]),
                      Ref::borrow(call.callable), std::move(arguments)});
}

bool Recorder::append(PyObject* list, PyObject* item) {
  if (!touch(list)) return false;
  Tracked* tracked = tracked_.find(list);
  if (tracked->source == nullptr) {
    save_for_rollback(list);
    return PyList_Append(list, item) == 0;
  }
  if (PyList_Append(list, item) < 0) return false;
  tracked->is_mutated = true;
  if (!tracked->is_known) ++tracked->appended;
  effects_.push_back({Effect::Kind::append, Ref::borrow(list), Ref(), Ref::borrow(item)});
  return true;
}

bool Recorder::know_order(PyObject* object) {
  if (!PyAnySet_Check(object)) return true;
  const Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr || tracked->source == nullptr) return true;
  if (tracked->is_mutated) return false;  // depends on more than the order before
  tracked->source->checks.order = Ref::steal(PySequence_Tuple(object));
  return true;
}

bool Recorder::has_known_items(PyObject* object) {
  if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) return true;
  if (!is_sequence(object)) return false;
  is_python_method(object, "__getitem__");  // a subclass may get one later: guarded
  is_python_method(object, "__iter__");
  return has_builtin_items(object);
}

bool Recorder::is_iterable_known(PyObject* object) {
  return has_known_items(object) || is_scalar(object) || is_builtin_dict(object) ||
         PyAnySet_CheckExact(object) || Py_TYPE(object) == &PyRange_Type ||
         Py_TYPE(object) == deque_type();
}

}  // namespace assay::capture
