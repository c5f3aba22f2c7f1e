// Containers: building, reading, changing and iterating over them.
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/dict_order.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// A subclass that reads its items as list and tuple do.
bool has_builtin_items(PyObject* object) {
  const PyTypeObject* type = Py_TYPE(object);
  const PyMappingMethods* mapping = type->tp_as_mapping;
  if (PyTuple_Check(object)) {
    return mapping != nullptr &&
           mapping->mp_subscript == PyTuple_Type.tp_as_mapping->mp_subscript &&
           type->tp_iter == PyTuple_Type.tp_iter;
  }
  if (PyList_Check(object)) {
    return mapping->mp_subscript == PyList_Type.tp_as_mapping->mp_subscript &&
           type->tp_iter == PyList_Type.tp_iter;
  }
  return false;
}

}  // namespace

bool is_container(PyObject* object) {
  return is_sequence(object) || PyDict_Check(object) || PyAnySet_Check(object);
}

bool Recorder::is_known_key(PyObject* key) {
  if (is_scalar(key)) return true;
  if (PyTuple_CheckExact(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      if (!is_known_key(PyTuple_GET_ITEM(key, i))) return false;
    }
    return true;
  }
  touch(key);
  const Tracked* tracked = tracked_.find(key);
  return tracked != nullptr && tracked->kind == Tracked::Kind::constant;
}

bool Recorder::know_contents(PyObject* container) {
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
      if (!arrived(PySequence_Fast_GET_ITEM(container, i),
                   sources_.get(Access::element, source, nullptr, i))) {
        return false;
      }
    }
    return tracked->is_known = true;
  }
  if (PyDict_Check(container)) return tracked->is_known = know_items(container, *tracked);
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

bool Recorder::know_items(PyObject* dict, Tracked& tracked) {
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
    if (!arrived(value, sources_.get(Access::item, tracked.source, key))) return false;
  }
  tracked.source->checks.keys = Ref::steal(PyList_AsTuple(keys.get()));
  return true;
}

void Recorder::before_item_change(PyObject* dict) {
  constexpr Py_ssize_t kMost = 1000;  // larger ones are not looked at as a whole
  Tracked* tracked = tracked_.find(dict);
  if (tracked == nullptr || tracked->source == nullptr || tracked->is_known ||
      tracked->is_mutated || PyDict_GET_SIZE(dict) > kMost) {
    return;
  }
  tracked->first_keys = keys_in_order(dict);
}

bool Recorder::know_sortable(PyObject* object) {
  if (is_scalar(object)) return true;
  if (!touch(object) || is_tensor(object)) return false;
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
  if (tracked_.find(object)->kind == Tracked::Kind::constant && is_identity_object(object)) {
    return true;
  }
  if (is_device(object) || is_value_of_subclass(object)) return true;
  if (!is_container(object) && !PySlice_Check(object) && Py_TYPE(object) != &PyRange_Type) {
    return false;
  }
  if (!know_contents(object)) return false;
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

bool Recorder::store_item(Activation& a, Operand container, Operand key, Operand value) {
  if (!is_recording()) return Operations::store_item(a, container, key, value);
  read(container);
  read(key);
  read(value);
  PyObject* object = container.object;
  const auto plainly = [&](const char* why) {
    if (!stop(a, why)) return false;
    return Operations::store_item(a, container, key, value);
  };
  if (!touch(object) || !touch(value.object)) return plainly("an unknown object is stored");
  if (is_tensor(object)) {
    PyObject* args[] = {nullptr, object, key.object, value.object};
    static PyObject* const setitem = [] {
      PyObject* module = import_module("operator");
      return PyObject_GetAttrString(module, "setitem");
    }();
    PyObject* result =
        call_tensor_function(a, "operator.setitem", false, {setitem, args + 1, 3, nullptr});
    Py_XDECREF(result);
    return result != nullptr;
  }
  if (PyDict_Check(object) && is_method_of_dict(object, "__setitem__")) {
    if (!is_known_key(key.object)) {
      const Tracked* tracked = tracked_.find(object);
      if (tracked->source != nullptr) return plainly("a key of a dict is an object");
    }
    const Tracked* tracked = tracked_.find(object);
    if (tracked->source == nullptr) save_for_rollback(object);
    before_item_change(object);
    if (!Operations::store_item(a, container, key, value)) return false;
    changed_item(object, key.object, value.object);
    return true;
  }
  if (PyList_CheckExact(object)) {
    if (!know_all(key.object) || !before_change(object)) {
      return plainly("a list is changed whose contents are not known");
    }
    if (!is_scalar(value.object) && PySlice_Check(key.object) && !know_contents(value.object)) {
      return plainly("a list is changed in a way that is not modelled");
    }
    if (!Operations::store_item(a, container, key, value)) return false;
    changed_contents(object);
    return true;
  }
  if (is_python_method(object, "__setitem__")) {
    PyObject* result = call_method(a, object, "__setitem__", {key.object, value.object});
    Py_XDECREF(result);
    return result != nullptr;
  }
  return plainly("an item of an object that is not modelled is set");
}

bool Recorder::delete_item(Activation& a, Operand container, Operand key) {
  if (!is_recording()) return Operations::delete_item(a, container, key);
  read(container);
  read(key);
  PyObject* object = container.object;
  if (touch(object) && PyDict_Check(object) && is_method_of_dict(object, "__delitem__") &&
      is_known_key(key.object)) {
    if (tracked_.find(object)->source == nullptr) save_for_rollback(object);
    read_item(object, key.object);
    before_item_change(object);
    if (!Operations::delete_item(a, container, key)) return false;
    changed_item(object, key.object, nullptr);
    return true;
  }
  if (PyList_CheckExact(object) && know_all(key.object) && before_change(object)) {
    if (!Operations::delete_item(a, container, key)) return false;
    changed_contents(object);
    return true;
  }
  if (is_python_method(object, "__delitem__")) {
    PyObject* result = call_method(a, object, "__delitem__", {key.object});
    Py_XDECREF(result);
    return result != nullptr;
  }
  if (!stop(a, "del of an item of an object that is not modelled")) return false;
  return Operations::delete_item(a, container, key);
}

// ---- Reading ----

PyObject* Recorder::load_item(Activation& a, Operand container, Operand key) {
  if (!is_recording()) return Operations::load_item(a, container, key);
  read(container);
  read(key);
  PyObject* object = container.object;
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return Operations::load_item(a, container, key);
  };
  if (!touch(object)) return plainly("an item of an object that is not known");
  if (is_tensor(object)) {
    return tensor_operator(a, "operator.getitem", object, key.object);
  }
  if (is_scalar(object)) {
    if (!know_all(key.object)) return plainly("an unknown index");
    return made(a, Operations::load_item(a, container, key), "indexing");
  }
  if (is_sequence(object) && has_builtin_items(object)) {
    if (is_tensor(key.object)) return plainly("a list is indexed by a tensor's value");
    if (!know_all(key.object)) {
      if (!is_python_method(key.object, "__index__")) return plainly("an unknown index");
    }
    if (!know_contents(object)) return plainly("the contents of a container are not known");
    return made(a, Operations::load_item(a, container, key), "indexing");
  }
  if (PyDict_Check(object) && is_method_of_dict(object, "__getitem__")) {
    const Tracked* tracked = tracked_.find(object);
    if (!is_known_key(key.object) && tracked->source != nullptr) {
      return plainly("a dict is indexed by an object");
    }
    PyObject* found = read_item(object, key.object);
    if (found != nullptr) return Py_NewRef(found);
    if (PyErr_Occurred() != nullptr) return nullptr;
    static PyObject* const missing = PyUnicode_InternFromString("__missing__");
    PyObject* handler =
        PyDict_CheckExact(object) ? nullptr : lookup_on_type(Py_TYPE(object), missing);
    if (handler == nullptr) return Operations::load_item(a, container, key);  // KeyError
    if (PyFunction_Check(handler)) return call_method(a, object, "__missing__", {key.object});
    if (Py_TYPE(object) != defaultdict_type()) return plainly("a missing key of a dict");
    return default_item(a, object, key);
  }
  if ((Py_TYPE(object) == &PyRange_Type || Py_TYPE(object) == deque_type()) &&
      know_contents(object) && know_all(key.object)) {
    return made(a, Operations::load_item(a, container, key), "indexing");
  }
  if (PyType_Check(object)) {
    // list[int], Optional[Tensor]: annotations.
    if (!know_all(key.object)) return plainly("a generic type");
    PyObject* generic = Operations::load_item(a, container, key);
    if (generic != nullptr) is_constant(generic);
    return generic;
  }
  if (is_python_method(object, "__getitem__")) {
    return call_method(a, object, "__getitem__", {key.object});
  }
  return plainly(std::string("indexing an object of type '") + Py_TYPE(object)->tp_name + "'");
}

// A defaultdict is asked for a key that it does not have.
PyObject* Recorder::default_item(Activation& a, PyObject* dict, Operand key) {
  static PyObject* const name = PyUnicode_InternFromString("default_factory");
  const Ref factory = Ref::steal(get_attribute(a, dict, name));
  if (!factory) return nullptr;
  if (factory.get() == Py_None) return Operations::load_item(a, {dict, nullptr}, key);  // KeyError
  PyObject* no_args[] = {nullptr};
  Ref value = Ref::steal(call_object(a, {factory.get(), no_args + 1, 0, nullptr}));
  if (!value || !store_item(a, {dict, nullptr}, key, {value.get(), nullptr})) return nullptr;
  return value.release();
}

bool Recorder::is_method_of_dict(PyObject* object, const char* name) {
  const Ref text = Ref::steal(PyUnicode_InternFromString(name));
  PyObject* found = lookup_on_type(Py_TYPE(object), text.get());
  return found != nullptr && (found == _PyType_Lookup(&PyDict_Type, text.get()) ||
                              found == _PyType_Lookup(&PyODict_Type, text.get()));
}

bool Recorder::is_python_method(PyObject* object, const char* name) {
  const Ref text = Ref::steal(PyUnicode_InternFromString(name));
  if (is_scalar(object) || !touch(object)) return false;
  PyObject* found = lookup_on_type(Py_TYPE(object), text.get());
  return found != nullptr && PyFunction_Check(found);
}

PyObject* Recorder::call_method(Activation& a, PyObject* object, const char* name,
                                std::initializer_list<PyObject*> args) {
  const Ref text = Ref::steal(PyUnicode_InternFromString(name));
  PyObject* function = lookup_on_type(Py_TYPE(object), text.get());
  is_constant(function);
  std::vector<PyObject*> all = {nullptr, object};
  all.insert(all.end(), args.begin(), args.end());
  return call_object(a, {function, all.data() + 1, all.size() - 1, nullptr});
}

bool Recorder::know_distinct(PyObject* object, PyObject* set) {
  constexpr Py_ssize_t kMost = 256;  // guards grow with the square of a loop's tensors
  if (PySet_GET_SIZE(set) > kMost) return false;
  const Tracked* one = tracked_.find(object);
  PyObject* member = nullptr;
  Py_ssize_t position = 0;
  Py_hash_t hash = 0;
  while (_PySet_NextEntry(set, &position, &member, &hash) != 0) {
    const Tracked* other = tracked_.find(member);
    if (member == object || other == nullptr || Py_TYPE(member) != Py_TYPE(object)) continue;
    if (one->source != nullptr && other->source != nullptr) {
      distinct_.emplace_back(one->source, other->source);
    }
  }
  return true;
}

PyObject* Recorder::contains(Activation& a, Operand item, Operand container, bool invert) {
  if (!is_recording()) return Operations::contains(a, item, container, invert);
  read(item);
  read(container);
  PyObject* object = container.object;
  const auto plainly = [&](const char* why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return Operations::contains(a, item, container, invert);
  };
  if (!touch(object) || !touch(item.object)) return plainly("`in` on an unknown object");
  if (is_tensor(object)) return plainly("`in` on a tensor reads its values");
  const std::size_t before = unexplained();
  if (is_scalar(object)) return Operations::contains(a, item, container, invert);
  if (is_builtin_dict(object) && is_known_key(item.object)) {
    read_item(object, item.object);
    if (PyErr_Occurred() != nullptr) return nullptr;
    return Operations::contains(a, item, container, invert);
  }
  if (is_python_method(object, "__contains__")) {
    const Ref result = Ref::steal(call_method(a, object, "__contains__", {item.object}));
    if (!result) return nullptr;
    const int truth = is_true(a, {result.get(), nullptr});
    if (truth < 0) return nullptr;
    return Py_NewRef((truth == 1) != invert ? Py_True : Py_False);
  }
  if (Py_TYPE(object) == &PyDictKeys_Type || Py_TYPE(object) == &PyODictKeys_Type) {
    PyObject* dict = dict_of_view(object);
    if (tracked_.find(dict) != nullptr && is_known_key(item.object)) {
      read_item(dict, item.object);
      return Operations::contains(a, item, container, invert);
    }
  }
  if (PyAnySet_Check(object) && is_plain_tensor(item.object) && know_contents(object)) {
    if (!know_distinct(item.object, object)) return plainly("`in` on a set of too many tensors");
    const SuspendScope suspended(*this);  // Tensor.__hash__ is by identity
    return Operations::contains(a, item, container, invert);
  }
  if (is_sequence(object) && know_contents(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      PyObject* element = PySequence_Fast_GET_ITEM(object, i);
      // Up to the item itself: a tensor's == would run an operator.
      if (element == item.object) break;
      if (!know_comparable(item.object, element)) return plainly("`in` compares values");
    }
    return watched(a, before, Operations::contains(a, item, container, invert));
  }
  if ((PyAnySet_Check(object) || Py_TYPE(object) == &PyRange_Type || PyDict_Check(object)) &&
      (is_known_key(item.object) || know_all(item.object)) && know_contents(object)) {
    return watched(a, before, Operations::contains(a, item, container, invert));
  }
  return plainly("`in` on an object that is not modelled");
}

PyObject* Recorder::get_len(Activation& a, Operand value) {
  if (is_recording() && (!know_contents(value.object) || is_tensor(value.object))) {
    if (!stop(a, "the length of an object that is not modelled")) return nullptr;
  }
  return Operations::get_len(a, value);
}

// ---- Building ----

namespace {

void read_all(Recorder& recorder, PyObject* const* items, Source* const* origins,
              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) recorder.read({items[i], origins[i]});
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
  PyObject* built = Operations::build_set(a, items, origins, count);
  if (!is_recording() || built == nullptr) return built;
  read_all(*this, items, origins, count);
  tracked_.add(built, Tracked::Kind::local).is_known = true;
  return built;
}

PyObject* Recorder::build_map(Activation& a, PyObject* const* items, Source* const* origins,
                              std::size_t pairs) {
  PyObject* built = Operations::build_map(a, items, origins, pairs);
  if (!is_recording() || built == nullptr) return built;
  read_all(*this, items, origins, 2 * pairs);
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
  if (spec.object != nullptr) read(spec);
  PyObject* object = value.object;
  const bool has_python_text = is_python_method(object, "__format__") ||
                               is_python_method(object, "__str__") ||
                               is_python_method(object, "__repr__");
  if (!is_scalar(object) && !has_python_text && !is_torch_enum(object) && !is_device(object) &&
      !PyType_Check(object)) {
    bool only_values = know_all(object) && is_sequence(object);
    if (only_values) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
        only_values = only_values && is_scalar(PySequence_Fast_GET_ITEM(object, i));
      }
    }
    if (!only_values) {
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

bool Recorder::know_order(PyObject* object) {
  if (!PyAnySet_Check(object)) return true;
  const Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr || tracked->source == nullptr) return true;
  if (tracked->is_mutated) return false;  // depends on more than the order before
  tracked->source->checks.order = Ref::steal(PySequence_Tuple(object));
  return true;
}

bool Recorder::is_iterable_known(PyObject* object) {
  return (is_sequence(object) && has_builtin_items(object)) || is_scalar(object) ||
         is_builtin_dict(object) || PyAnySet_CheckExact(object) ||
         Py_TYPE(object) == &PyRange_Type || Py_TYPE(object) == deque_type();
}

bool Recorder::list_extend(Activation& a, PyObject* list, Operand iterable) {
  if (!is_recording()) return Operations::list_extend(a, list, iterable);
  read(iterable);
  if (is_iterable_known(iterable.object) && know_contents(iterable.object) &&
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
    if (tracked_.find(set) == nullptr && !stop(a, "a set that is not known")) return false;
    if (is_recording()) save_for_rollback(set);
  }
  return Operations::set_add(a, set, item);
}

bool Recorder::set_update(Activation& a, PyObject* set, Operand iterable) {
  if (is_recording()) {
    read(iterable);
    if (!is_iterable_known(iterable.object) || !know_contents(iterable.object)) {
      if (!stop(a, "a set is made of an iterable that is not modelled")) return false;
    }
  }
  return Operations::set_update(a, set, iterable);
}

bool Recorder::map_add(Activation& a, PyObject* dict, Operand key, Operand value) {
  if (is_recording()) {
    read(key);
    read(value);
    if (tracked_.find(dict) == nullptr && !stop(a, "a dict that is not known")) return false;
    if (is_recording()) save_for_rollback(dict);
  }
  return Operations::map_add(a, dict, key, value);
}

bool Recorder::dict_update(Activation& a, PyObject* dict, Operand other) {
  if (is_recording()) {
    read(other);
    if (!is_builtin_dict(other.object) || !know_contents(other.object)) {
      if (!stop(a, "** of an object that is not a known dict")) return false;
    }
  }
  return Operations::dict_update(a, dict, other);
}

bool Recorder::dict_merge(Activation& a, PyObject* dict, Operand other, PyObject* function) {
  if (is_recording()) {
    read(other);
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
  if (is_iterable_known(iterable.object) && know_contents(iterable.object) &&
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

// ---- Iterating ----

PyObject* Recorder::get_iter(Activation& a, Operand iterable) {
  if (!is_recording()) return Operations::get_iter(a, iterable);
  read(iterable);
  PyObject* object = iterable.object;
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return Operations::get_iter(a, iterable);
  };
  if (!touch(object)) return plainly("a loop over an object that is not known");
  if (is_python_method(object, "__iter__") && !is_iterable_known(object)) {
    return call_method(a, object, "__iter__", {});
  }
  const Tracked* tracked = tracked_.find(object);
  if (PyIter_Check(object)) {
    if (tracked->kind != Tracked::Kind::local) return Operations::get_iter(a, iterable);
    return Operations::get_iter(a, iterable);
  }
  if (PyObject* dict = dict_of_view(object)) {
    if (!know_contents(dict)) return plainly("a loop over a dict whose contents are not known");
  } else if (!is_iterable_known(object) && !PyDict_Check(object)) {
    return plainly(std::string("a loop over an object of type '") + Py_TYPE(object)->tp_name + "'");
  } else if (!know_contents(object)) {
    return plainly("a loop over a container whose contents are not known");
  }
  if (!know_order(object)) return plainly("a loop over a set that was changed");
  return made(a, Operations::get_iter(a, iterable), "iter()");
}

PyObject* Recorder::next(Activation& a, Operand iterator) {
  if (!is_recording()) return Operations::next(a, iterator);
  PyObject* object = iterator.object;
  const Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr || tracked->kind != Tracked::Kind::local) {
    if (is_python_method(object, "__next__")) {
      PyObject* item = call_method(a, object, "__next__", {});
      if (item == nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) != 0) PyErr_Clear();
      return item;
    }
    const bool is_natural = tracked != nullptr;
    if (!stop(a, "an iterator from before the segment goes on", !is_natural)) return nullptr;
    return Operations::next(a, iterator);
  }
  if (is_python_method(object, "__next__")) {
    PyObject* item = call_method(a, object, "__next__", {});
    if (item == nullptr && PyErr_ExceptionMatches(PyExc_StopIteration) != 0) PyErr_Clear();
    return item;
  }
  // Those over other iterators may call back the program, which may end the segment half-way.
  save_for_rollback(object, is_iterator_of_iterators(object));
  const std::size_t before = unexplained();
  PyObject* item = watched(a, before, Operations::next(a, iterator));
  return item == nullptr ? nullptr : made(a, item, "an iterator");
}

PyObject* Recorder::get_yield_from_iter(Activation& a, Operand iterable) {
  if (!is_recording() || PyGen_CheckExact(iterable.object)) {
    return Operations::get_yield_from_iter(a, iterable);
  }
  return get_iter(a, iterable);
}

PySendResult Recorder::send(Activation& a, Operand receiver, Operand value, PyObject** result) {
  if (is_recording()) {
    read(value);
    const Tracked* tracked = tracked_.find(receiver.object);
    const bool is_own = tracked != nullptr && tracked->kind == Tracked::Kind::local;
    if (!is_own && !stop(a, "a generator from before the segment goes on")) return PYGEN_ERROR;
  }
  return Operations::send(a, receiver, value, result);
}

void Recorder::yielding(Activation& a, Operand value) {
  if (!is_recording()) return;
  read(value);
  if (&a == root_) stop(a, "yield");
}

}  // namespace assay::capture
