// Building containers, strings and slices, and taking iterables apart.
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/dict_order.h"
#include "capture/models/table.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

void read_all(Recorder& recorder, PyObject* const* items, Source* const* origins,
              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) recorder.read({items[i], origins[i]});
}

// Every `step`-th of the items. Returns a tensor among them if there is one.
PyObject* use_as_keys(Recorder& recorder, PyObject* const* items, std::size_t count,
                      std::size_t step) {
  PyObject* found = Py_None;
  for (std::size_t i = 0; i < count; i += step) {
    recorder.use_as_key(items[i]);
    if (is_tensor(items[i])) found = items[i];
  }
  return found;
}

// A mapping that is written in Python.
bool is_other_mapping(Recorder& recorder, PyObject* object) {
  return !PyDict_Check(object) && recorder.is_python_method(object, "__getitem__") &&
         _PyType_Lookup(Py_TYPE(object), Ref::steal(PyUnicode_FromString("keys")).get()) != nullptr;
}

}  // namespace

PyObject* Recorder::build_tuple(Activation& a, PyObject* const* items, Source* const* origins,
                                std::size_t count) {
  PyObject* built = Operations::build_tuple(a, items, origins, count);
  if (!is_recording() || built == nullptr) return built;
  read_all(*this, items, origins, count);
  if (count == 0) return built;  // the empty tuple is one object
  tracked_.add(built, Tracked::Kind::local).is_known = true;
  return built;
}

PyObject* Recorder::build_list(Activation& a, PyObject* const* items, Source* const* origins,
                               std::size_t count) {
  PyObject* built = Operations::build_list(a, items, origins, count);
  if (!is_recording() || built == nullptr) return built;
  read_all(*this, items, origins, count);
  tracked_.add(built, Tracked::Kind::local).is_known = true;
  return built;
}

PyObject* Recorder::build_set(Activation& a, PyObject* const* items, Source* const* origins,
                              std::size_t count) {
  if (!is_recording()) return Operations::build_set(a, items, origins, count);
  read_all(*this, items, origins, count);
  const KeyScope hashing(*this, use_as_keys(*this, items, count, 1));
  PyObject* built = Operations::build_set(a, items, origins, count);
  if (!is_recording() || built == nullptr) return built;
  tracked_.add(built, Tracked::Kind::local).is_known = true;
  return built;
}

PyObject* Recorder::build_map(Activation& a, PyObject* const* items, Source* const* origins,
                              std::size_t pairs) {
  if (!is_recording()) return Operations::build_map(a, items, origins, pairs);
  read_all(*this, items, origins, 2 * pairs);
  const KeyScope hashing(*this, use_as_keys(*this, items, 2 * pairs, 2));
  PyObject* built = Operations::build_map(a, items, origins, pairs);
  if (!is_recording() || built == nullptr) return built;
  tracked_.add(built, Tracked::Kind::local).is_known = true;
  return built;
}

PyObject* Recorder::build_const_key_map(Activation& a, PyObject* keys, PyObject* const* values,
                                        Source* const* origins) {
  PyObject* built = Operations::build_const_key_map(a, keys, values, origins);
  if (!is_recording() || built == nullptr) return built;
  read_all(*this, values, origins, static_cast<std::size_t>(PyTuple_GET_SIZE(keys)));
  tracked_.add(built, Tracked::Kind::local).is_known = true;
  return built;
}

PyObject* Recorder::build_string(Activation& a, PyObject* const* items, Source* const* origins,
                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) read({items[i], origins[i]});
  return Operations::build_string(a, items, origins, count);  // of strings, which are values
}

PyObject* Recorder::build_slice(Activation& a, Operand start, Operand stop_at, Operand step) {
  PyObject* built = Operations::build_slice(a, start, stop_at, step);
  if (!is_recording() || built == nullptr) return built;
  read(start);
  read(stop_at);
  if (step.object != nullptr) read(step);
  tracked_.add(built, Tracked::Kind::local).is_known = true;
  return built;
}

PyObject* Recorder::format_value(Activation& a, Operand value, int conversion, Operand spec) {
  if (!is_recording()) return Operations::format_value(a, value, conversion, spec);
  read(value);
  use_sizes(value.object);
  if (spec.object != nullptr) read(spec);
  PyObject* object = value.object;
  const bool has_python_text = is_python_method(object, "__format__") ||
                               is_python_method(object, "__str__") ||
                               is_python_method(object, "__repr__");
  if (!is_scalar(object) && !has_python_text && !is_torch_enum(object) && !is_device(object) &&
      !PyType_Check(object)) {
    if (!has_only_values(object)) {
      if (!stop(a, "formatting an object of type '" + std::string(Py_TYPE(object)->tp_name) +
                       "' reads its values")) {
        return nullptr;
      }
      return Operations::format_value(a, value, conversion, spec);
    }
  }
  const std::size_t before = unexplained();
  return watched(a, before, Operations::format_value(a, value, conversion, spec));
}

bool Recorder::list_append(Activation& a, PyObject* list, Operand item) {
  if (!is_recording()) return Operations::list_append(a, list, item);
  read(item);
  if (tracked_.find(list) == nullptr) {
    if (!stop(a, "a comprehension whose list is not known")) return false;
    return Operations::list_append(a, list, item);
  }
  return append(list, item.object);
}

bool Recorder::list_extend(Activation& a, PyObject* list, Operand iterable) {
  if (!is_recording()) return Operations::list_extend(a, list, iterable);
  read(iterable);
  if (is_iterable_known(iterable.object) && know_contents(iterable.object, true) &&
      know_order(iterable.object)) {
    if (!before_change(list)) {
      if (!stop(a, "a list is extended whose contents are not known")) return false;
      return Operations::list_extend(a, list, iterable);
    }
    if (!Operations::list_extend(a, list, iterable)) return false;
    changed_contents(list);
    return true;
  }
  // Item by item: generators and other iterators are followed.
  const Ref iterator = Ref::steal(get_iter(a, iterable));
  if (!iterator) return false;
  while (true) {
    const Ref item = Ref::steal(next(a, {iterator.get(), nullptr}));
    if (!item) return PyErr_Occurred() == nullptr;
    if (!list_append(a, list, {item.get(), nullptr})) return false;
  }
}

PyObject* Recorder::list_to_tuple(Activation& a, PyObject* list) {
  PyObject* built = Operations::list_to_tuple(a, list);
  if (!is_recording() || built == nullptr || PyTuple_GET_SIZE(built) == 0) return built;
  tracked_.add(built, Tracked::Kind::local).is_known = true;
  return built;
}

bool Recorder::set_add(Activation& a, PyObject* set, Operand item) {
  if (is_recording()) {
    read(item);
    const bool is_known = tracked_.find(set) != nullptr && use_as_key(item.object);
    if (!is_known && !stop(a, "a set that is not known")) return false;
    if (is_recording()) save_for_rollback(set);
  }
  const KeyScope hashing(*this, item.object);
  return Operations::set_add(a, set, item);
}

bool Recorder::set_update(Activation& a, PyObject* set, Operand iterable) {
  if (is_recording()) {
    read(iterable);
    const Tracked* tracked = is_scalar(iterable.object) ? nullptr : tracked_.find(iterable.object);
    if (tracked != nullptr && tracked->kind == Tracked::Kind::local &&
        PyIter_Check(iterable.object)) {
      while (true) {
        const Ref item = Ref::steal(next(a, iterable));
        if (!item) return PyErr_Occurred() == nullptr;
        if (!set_add(a, set, {item.get(), nullptr})) return false;
      }
    }
    if (!is_iterable_known(iterable.object) || !know_contents(iterable.object)) {
      if (!stop(a, "a set is made of an iterable that is not modelled")) return false;
    } else {
      use_items_as_keys(iterable.object);
    }
  }
  return Operations::set_update(a, set, iterable);
}

bool Recorder::map_add(Activation& a, PyObject* dict, Operand key, Operand value) {
  if (is_recording()) {
    read(key);
    read(value);
    const bool is_known = tracked_.find(dict) != nullptr && use_as_key(key.object);
    if (!is_known && !stop(a, "a dict that is not known")) return false;
    if (is_recording()) save_for_rollback(dict);
  }
  const KeyScope hashing(*this, key.object);
  return Operations::map_add(a, dict, key, value);
}

bool Recorder::dict_update(Activation& a, PyObject* dict, Operand other) {
  if (is_recording()) {
    read(other);
    if (is_other_mapping(*this, other.object)) return store_all(*this, a, dict, other.object);
    if (!is_builtin_dict(other.object) || !know_contents(other.object)) {
      if (!stop(a, "** of an object that is not a known dict")) return false;
    } else {
      use_items_as_keys(other.object);
    }
  }
  return Operations::dict_update(a, dict, other);
}

bool Recorder::dict_merge(Activation& a, PyObject* dict, Operand other, PyObject* function) {
  if (is_recording()) {
    read(other);
    // Into an empty dict: no keyword can be there twice.
    if (PyDict_GET_SIZE(dict) == 0 && is_other_mapping(*this, other.object)) {
      return store_all(*this, a, dict, other.object);
    }
    if (!is_builtin_dict(other.object) || !know_contents(other.object)) {
      if (!stop(a, "** of an object that is not a known dict")) return false;
    }
  }
  return Operations::dict_merge(a, dict, other, function);
}

bool Recorder::unpack(Activation& a, Operand iterable, int before, int after, PyObject** out) {
  if (!is_recording()) return Operations::unpack(a, iterable, before, after, out);
  read(iterable);
  Ref items;
  if (is_iterable_known(iterable.object) && know_contents(iterable.object, true) &&
      know_order(iterable.object)) {
    items = Ref::borrow(iterable.object);
  } else {
    const Ref iterator = Ref::steal(get_iter(a, iterable));
    if (!iterator) return false;
    if (!is_recording()) return Operations::unpack(a, {iterator.get()}, before, after, out);
    items = Ref::steal(PyList_New(0));
    while (true) {
      const Ref item = Ref::steal(next(a, {iterator.get(), nullptr}));
      if (!item) break;
      if (PyList_Append(items.get(), item.get()) < 0) return false;
    }
    if (PyErr_Occurred() != nullptr) return false;
  }
  if (!Operations::unpack(a, {items.get(), nullptr}, before, after, out)) return false;
  if (!is_recording()) return true;
  const int count = before + (after < 0 ? 0 : 1 + after);
  for (int i = 0; i < count; ++i) is_local(out[i]);
  return true;
}

}  // namespace assay::capture
