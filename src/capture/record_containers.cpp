// Containers: reading and changing their items, and iterating over them.
#include <optional>
#include <string>
#include <string_view>

#include "capture/arrays.h"
#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/dict_order.h"
#include "capture/models.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// typing.Optional, typing.List, ...
bool is_of_typing(PyObject* object) {
  const Ref module = Ref::steal(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__module__"));
  PyErr_Clear();
  return module && PyUnicode_Check(module.get()) &&
         PyUnicode_CompareWithASCIIString(module.get(), "typing") == 0;
}

// What a generic type is made of: types, list[int], `int | None`, a TypeVar, lists of these.
bool know_type_argument(Recorder& recorder, PyObject* object, int depth = 0) {
  if (is_scalar(object)) return true;
  if (depth > 20 || !recorder.touch(object)) return false;
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    if (!recorder.know_contents(object)) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      if (!know_type_argument(recorder, PySequence_Fast_GET_ITEM(object, i), depth + 1)) {
        return false;
      }
    }
    return true;
  }
  const bool is_type = is_of_typing(object) || Py_TYPE(object) == &Py_GenericAliasType ||
                       std::string_view(Py_TYPE(object)->tp_name) == "types.UnionType" ||
                       is_identity_object(object);
  if (is_type) recorder.guard_identity(object);
  return is_type;
}

}  // namespace

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
  if (!is_tensor(object)) use_sizes(key.object);
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
  if (is_array(object)) {
    static PyObject* const set = PyObject_GetAttrString(import_module("operator"), "setitem");
    PyObject* args[] = {nullptr, object, key.object, value.object};
    return static_cast<bool>(Ref::steal(change_array(a, {set, args + 1, 3, nullptr})));
  }
  if (PyDict_Check(object) && is_method_of_dict(object, "__setitem__")) {
    if (!prepare_key(object, key.object)) return plainly("a key of a dict is not known");
    const KeyScope hashing(*this, key.object);
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
  if (Py_TYPE(object) == deque_type() && know_all(key.object) && before_change(object)) {
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
  use_sizes(key.object);
  PyObject* object = container.object;
  if (touch(object) && PyDict_Check(object) && is_method_of_dict(object, "__delitem__") &&
      prepare_key(object, key.object)) {
    const KeyScope hashing(*this, key.object);
    if (tracked_.find(object)->source == nullptr) save_for_rollback(object);
    read_item(object, key.object);
    before_item_change(object);
    if (!Operations::delete_item(a, container, key)) return false;
    changed_item(object, key.object, nullptr);
    return true;
  }
  if ((PyList_CheckExact(object) || Py_TYPE(object) == deque_type()) && know_all(key.object) &&
      before_change(object)) {
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
  if (PyObject* mapping = mapping_behind(*this, object)) {
    return load_item(a, {mapping, nullptr}, key);
  }
  if (is_tensor(object)) {
    return tensor_operator(a, "operator.getitem", object, key.object);
  }
  if (is_computed_array(object)) return array_operator(a, "operator.getitem", object, key.object);
  use_sizes(key.object);
  if (is_scalar(object)) {
    if (!know_all(key.object)) return plainly("an unknown index");
    return made(a, Operations::load_item(a, container, key), "indexing");
  }
  if (has_known_items(object)) {
    if (is_tensor(key.object)) return plainly("a list is indexed by a tensor's value");
    if (!know_all(key.object)) {
      if (!is_python_method(key.object, "__index__")) return plainly("an unknown index");
    }
    if (!know_contents(object, true)) return plainly("the contents of a container are not known");
    return made(a, Operations::load_item(a, container, key), "indexing");
  }
  if (PyDict_Check(object) && is_method_of_dict(object, "__getitem__")) {
    if (!prepare_key(object, key.object)) {
      return plainly("a dict is indexed by an object that is not known");
    }
    PyObject* found = nullptr;
    {
      const KeyScope hashing(*this, key.object);
      found = read_item(object, key.object, true);
    }
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
    if (!know_type_argument(*this, key.object)) return plainly("a generic type");
    // collections.abc.Callable[[int], int] is made by Python code.
    const Ref module = Ref::steal(PyObject_GetAttrString(object, "__module__"));
    PyErr_Clear();
    const bool is_abstract = module && PyUnicode_Check(module.get()) &&
                             PyUnicode_CompareWithASCIIString(module.get(), "collections.abc") == 0;
    std::optional<SuspendScope> suspended;
    if (is_abstract) suspended.emplace(*this);
    PyObject* generic = Operations::load_item(a, container, key);
    if (generic != nullptr) is_constant(generic);
    return generic;
  }
  if (is_of_typing(object) && know_type_argument(*this, key.object)) {
    const SuspendScope suspended(*this);  // Optional[int]: the same object each time, from a cache
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
  return !is_scalar(object) && touch(object) && is_python_method_of(Py_TYPE(object), name);
}

bool Recorder::is_python_method_of(PyTypeObject* type, const char* name) {
  const Ref text = Ref::steal(PyUnicode_InternFromString(name));
  PyObject* found = lookup_on_type(type, text.get());
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
  if (PyObject* mapping = mapping_behind(*this, object)) {
    return contains(a, item, {mapping, nullptr}, invert);
  }
  if (is_tensor(object)) return plainly("`in` on a tensor reads its values");
  use_sizes(item.object);
  use_sizes(object);
  const std::size_t before = unexplained();
  if (is_scalar(object)) return Operations::contains(a, item, container, invert);
  if (is_builtin_dict(object) && prepare_key(object, item.object)) {
    const KeyScope hashing(*this, item.object);
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
    if (tracked_.find(dict) != nullptr && prepare_key(dict, item.object)) {
      const KeyScope hashing(*this, item.object);
      read_item(dict, item.object);
      return Operations::contains(a, item, container, invert);
    }
  }
  if (PyAnySet_Check(object) && !is_scalar(item.object) && is_compared_by_identity(item.object) &&
      know_contents(object) && prepare_key(object, item.object)) {
    const KeyScope hashing(*this, item.object);
    return Operations::contains(a, item, container, invert);
  }
  const bool is_deque = Py_TYPE(object) == deque_type();
  if ((is_sequence(object) || is_deque) && know_contents(object)) {
    const Ref items = is_deque ? Ref::steal(PySequence_List(object)) : Ref::borrow(object);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      PyObject* element = PySequence_Fast_GET_ITEM(items.get(), i);
      // Up to the item itself: a tensor's == would run an operator.
      if (element == item.object) break;
      if (!know_comparable(item.object, element)) return plainly("`in` compares values");
    }
    return watched(a, before, Operations::contains(a, item, container, invert));
  }
  if ((PyAnySet_Check(object) || Py_TYPE(object) == &PyRange_Type || PyDict_Check(object)) &&
      (is_known_key(item.object) || know_all(item.object)) && know_contents(object)) {
    use_as_key(item.object);
    return watched(a, before, Operations::contains(a, item, container, invert));
  }
  if (PyObject* viewed = dict_of_view(object)) {
    // Values and items are compared; so is the key of an item, and looked for.
    bool is_known = is_scalar(item.object) || has_only_values(item.object);
    is_known = is_known && know_contents(viewed);
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (is_known && PyDict_Next(viewed, &position, &key, &value) != 0) {
      is_known = is_scalar(key) && know_comparable(item.object, value);
    }
    if (is_known) return watched(a, before, Operations::contains(a, item, container, invert));
  }
  const bool is_own_iterator =
      PyIter_Check(object) && tracked_.find(object)->kind == Tracked::Kind::local;
  if (is_own_iterator || is_python_method(object, "__iter__")) {
    return contains_by_iterating(a, item, object, invert);
  }
  return plainly("`in` on an object that is not modelled");
}

// Without __contains__ the items are compared one by one.
PyObject* Recorder::contains_by_iterating(Activation& a, Operand item, PyObject* object,
                                          bool invert) {
  const Ref iterator = Ref::steal(get_iter(a, {object, nullptr}));
  if (!iterator) return nullptr;
  while (true) {
    const Ref element = Ref::steal(next(a, {iterator.get(), nullptr}));
    if (!element) break;
    if (element.get() != item.object) {
      const Ref equal = Ref::steal(compare(a, Py_EQ, {element.get(), nullptr}, item));
      const int is_equal = equal ? is_true(a, {equal.get(), nullptr}) : -1;
      if (is_equal < 0) return nullptr;
      if (is_equal == 0) continue;
    } else if (is_recording()) {
      touch(item.object);
    }
    return Py_NewRef(invert ? Py_False : Py_True);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  return Py_NewRef(invert ? Py_True : Py_False);
}

PyObject* Recorder::get_len(Activation& a, Operand value) {
  if (is_recording() && (!know_contents(value.object) || is_tensor(value.object))) {
    if (!stop(a, "the length of an object that is not modelled")) return nullptr;
  }
  return Operations::get_len(a, value);
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
  if (PyObject* mapping = mapping_behind(*this, object)) return get_iter(a, {mapping, nullptr});
  if (is_python_method(object, "__iter__") && !is_iterable_known(object)) {
    return call_method(a, object, "__iter__", {});
  }
  if (is_computed_array(object)) {
    const Ref items = Ref::steal(items_of_array(a, object));
    if (!items) return nullptr;
    if (is_recording()) return get_iter(a, {items.get(), nullptr});
    return Operations::get_iter(a, iterable);
  }
  const Tracked* tracked = tracked_.find(object);
  if (PyIter_Check(object)) {
    if (tracked->kind != Tracked::Kind::local) return Operations::get_iter(a, iterable);
    return Operations::get_iter(a, iterable);
  }
  if (PyObject* dict = dict_of_view(object)) {
    if (!know_contents(dict)) return plainly("a loop over a dict whose contents are not known");
  } else if (Py_TYPE(object)->tp_iter == nullptr && is_python_method(object, "__getitem__")) {
    return made(a, Operations::get_iter(a, iterable), "iter()");  // asks __getitem__
  } else if (!is_iterable_known(object) && !PyDict_Check(object)) {
    return plainly(std::string("a loop over an object of type '") + Py_TYPE(object)->tp_name + "'");
  } else if (!know_contents(object, true)) {
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
