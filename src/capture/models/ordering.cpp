// min, max, sorted and list.sort: items are compared, or what a key function makes of them.
#include <algorithm>
#include <vector>

#include "capture/cpython_311.h"
#include "capture/models/table.h"

namespace assay::capture {

namespace {

// Keyword arguments of a call, by name; null where one is not there.
PyObject* keyword(const Call& call, const char* name) {
  const std::size_t positional = call.positional();
  for (std::size_t i = positional; i < call.count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional));
    if (PyUnicode_CompareWithASCIIString(key, name) == 0) return call.args[i];
  }
  return nullptr;
}

// Whether a call has no other keyword arguments than these; else it raises.
bool has_only(const Call& call, std::initializer_list<const char*> names) {
  const std::size_t positional = call.positional();
  for (std::size_t i = positional; i < call.count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional));
    const bool is_one = std::ranges::any_of(
        names, [&](const char* name) { return PyUnicode_CompareWithASCIIString(key, name) == 0; });
    if (!is_one) return false;
  }
  return true;
}

Ref key_of(Recorder& recorder, Activation& a, PyObject* function, PyObject* item) {
  if (function == nullptr || function == Py_None) return Ref::borrow(item);
  PyObject* args[] = {nullptr, item};
  return Ref::steal(recorder.call_object(a, {function, args + 1, 1, nullptr}));
}

template <int comparison>
PyObject* extreme(Recorder& recorder, Activation& a, const Call& call) {
  const bool is_valid = call.positional() == 1   ? has_only(call, {"key", "default"})
                        : call.positional() == 0 ? false
                                                 : has_only(call, {"key"});
  if (!is_valid) return recorder.call_watched(a, call);  // raises
  PyObject* function = keyword(call, "key");
  Ref items;
  if (call.positional() == 1) {
    items = items_of(recorder, a, call.args[0]);
  } else {
    const std::vector<Source*> origins(call.positional(), nullptr);
    items = Ref::steal(recorder.build_list(a, call.args, origins.data(), call.positional()));
  }
  if (!items) return nullptr;
  if (PyList_GET_SIZE(items.get()) == 0) {
    PyObject* otherwise = keyword(call, "default");
    if (otherwise != nullptr) return Py_NewRef(otherwise);
    PyErr_SetString(PyExc_ValueError, comparison == Py_LT ? "min() arg is an empty sequence"
                                                          : "max() arg is an empty sequence");
    return nullptr;
  }
  Ref best = Ref::borrow(PyList_GET_ITEM(items.get(), 0));
  Ref best_key = key_of(recorder, a, function, best.get());
  if (!best_key) return nullptr;
  for (Py_ssize_t i = 1; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    Ref key = key_of(recorder, a, function, item);
    if (!key) return nullptr;
    const Ref is_better = Ref::steal(
        recorder.compare(a, comparison, {key.get(), nullptr}, {best_key.get(), nullptr}));
    if (!is_better) return nullptr;
    const int decided = recorder.is_true(a, {is_better.get(), nullptr});
    if (decided < 0) return nullptr;
    if (decided == 1) {
      best = Ref::borrow(item);
      best_key = std::move(key);
    }
  }
  return best.release();
}

// The items of a list in order, a new list; null with an exception set. The segment ends where what
// would be compared is not known; a key function is called once for each item in any case.
Ref in_order(Recorder& recorder, Activation& a, PyObject* items, const Call& call) {
  PyObject* function = keyword(call, "key");
  const Ref keys = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); ++i) {
    const Ref key = key_of(recorder, a, function, PyList_GET_ITEM(items, i));
    if (!key) return {};
    recorder.use_sizes(key.get());
    if (recorder.is_recording() && !recorder.know_sortable(key.get()) &&
        !recorder.stop(a, "items are sorted by values that are not known")) {
      return {};
    }
    if (PyList_Append(keys.get(), key.get()) < 0) return {};
  }
  // The indices by their keys, so that equal ones keep their order.
  static PyObject* const sort = find_builtin("sorted");
  static PyObject* const names = Py_BuildValue("(ss)", "key", "reverse");
  const Ref indices = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); ++i) {
    const Ref index = Ref::steal(PyLong_FromSsize_t(i));
    PyList_Append(indices.get(), index.get());
  }
  const Ref get = Ref::steal(PyObject_GetAttrString(keys.get(), "__getitem__"));
  PyObject* reverse = keyword(call, "reverse");
  PyObject* args[] = {nullptr, indices.get(), get.get(), reverse == nullptr ? Py_False : reverse};
  const Ref sorted =
      Ref::steal(recorder.is_recording() ? recorder.call_watched(a, {sort, args + 1, 3, names})
                                         : PyObject_Vectorcall(sort, args + 1, 1, names));
  if (!sorted) return {};
  Ref made = Ref::steal(recorder.build_list(a, nullptr, nullptr, 0));
  for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(sorted.get()); ++i) {
    const Py_ssize_t index = PyLong_AsSsize_t(PyList_GET_ITEM(sorted.get(), i));
    if (PyList_Append(made.get(), PyList_GET_ITEM(items, index)) < 0) return {};
  }
  return made;
}

bool has_simple_reverse(const Call& call) {
  PyObject* reverse = keyword(call, "reverse");
  if (!has_only(call, {"key", "reverse"})) return false;
  return reverse == nullptr || PyBool_Check(reverse) || PyLong_Check(reverse);
}

PyObject* sorted(Recorder& recorder, Activation& a, const Call& call) {
  if (call.positional() != 1) return recorder.call_watched(a, call);
  const Ref items = items_of(recorder, a, call.args[0]);
  if (!items) return nullptr;
  if (has_simple_reverse(call)) return in_order(recorder, a, items.get(), call).release();
  std::vector<PyObject*> args(call.args, call.args + call.count);
  args[0] = items.get();
  args.insert(args.begin(), nullptr);
  return recorder.call_plainly(a, {call.callable, args.data() + 1, call.count, call.names},
                               "sorted() with an order that is not known");
}

PyObject* list_sort(Recorder& recorder, Activation& a, const Call& call) {
  PyObject* list = call.positional() == 1 ? call.args[0] : nullptr;
  if (list == nullptr || !recorder.know_contents(list) || !has_simple_reverse(call)) {
    return recorder.call_plainly(a, call, "a list is sorted whose contents are not known");
  }
  const Ref made = in_order(recorder, a, list, call);
  if (!made) return nullptr;
  const bool is_recorded = recorder.is_recording() && recorder.before_change(list);
  if (PyList_SetSlice(list, 0, PyList_GET_SIZE(list), made.get()) < 0) return nullptr;
  if (is_recorded) recorder.changed_contents(list);
  return Py_NewRef(Py_None);
}

}  // namespace

ModelTable ordering_models() {
  return {
      {"builtins.min", extreme<Py_LT>},
      {"builtins.max", extreme<Py_GT>},
      {"builtins.sorted", sorted},
      {"builtins.list.sort", list_sort},
  };
}

}  // namespace assay::capture
