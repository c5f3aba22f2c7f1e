// collections and heapq: deque, defaultdict, what Counter calls, heaps in lists.
#include <string>
#include <vector>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

// ---- deque ----

PyObject* make_deque(Recorder& recorder, Activation& a, const Call& call) {
  std::vector<PyObject*> args(call.args, call.args + call.count);
  args.insert(args.begin(), nullptr);
  Ref items;
  const bool has_items =
      call.positional() > 0 ||
      (call.names != nullptr && PyTuple_GET_SIZE(call.names) > 0 &&
       PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(call.names, 0), "iterable") == 0);
  if (has_items) {
    items = items_of(recorder, a, args[1]);
    if (!items) return nullptr;
    args[1] = items.get();
  }
  const Call with_items{call.callable, args.data() + 1, call.count, call.names};
  return recorder.made(a, recorder.call_watched(a, with_items), "a deque");
}

// Methods that change a deque and need to know what is in it.
PyObject* changes_deque(Recorder& recorder, Activation& a, const Call& call) {
  const auto plainly = [&] {
    return recorder.call_plainly(a, call, "a deque is changed that is not known");
  };
  if (call.count == 0 || Py_TYPE(call.args[0]) != deque_type()) return plainly();
  for (std::size_t i = 1; i < call.count; ++i) {
    if (!recorder.touch(call.args[i])) return plainly();
  }
  if (!recorder.before_change(call.args[0])) return plainly();
  PyObject* result = recorder.call_watched(a, call);
  if (recorder.is_recording()) recorder.changed_contents(call.args[0]);
  return result == nullptr ? nullptr : recorder.made(a, result, "a method of a deque");
}

PyObject* reads_deque(Recorder& recorder, Activation& a, const Call& call) {
  bool is_known = call.count > 0 && Py_TYPE(call.args[0]) == deque_type() &&
                  recorder.know_contents(call.args[0]);
  const Ref items = is_known ? Ref::steal(PySequence_List(call.args[0])) : Ref();
  for (std::size_t i = 1; is_known && i < call.count; ++i) {
    for (Py_ssize_t j = 0; is_known && j < PyList_GET_SIZE(items.get()); ++j) {
      is_known = recorder.know_comparable(call.args[i], PyList_GET_ITEM(items.get(), j));
    }
  }
  if (!is_known) return recorder.call_plainly(a, call, "a deque that is not known");
  return recorder.made(a, recorder.call_watched(a, call), "a method of a deque");
}

// extend and extendleft: of any iterable. Of an iterator item by item: what it calls back may look
// at the deque.
PyObject* extends_deque(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const methods = deque_type()->tp_dict;
  static PyObject* const left = PyDict_GetItemString(methods, "extendleft");
  static PyObject* const append = PyDict_GetItemString(methods, "append");
  static PyObject* const append_left = PyDict_GetItemString(methods, "appendleft");
  if (call.count != 2) return recorder.call_watched(a, call);  // raises
  if (!is_scalar(call.args[1]) && PyIter_Check(call.args[1])) {
    PyObject* method = call.callable == left ? append_left : append;
    while (true) {
      const Ref item = Ref::steal(recorder.next(a, {call.args[1], nullptr}));
      if (!item) return PyErr_Occurred() != nullptr ? nullptr : Py_NewRef(Py_None);
      PyObject* args[] = {nullptr, call.args[0], item.get()};
      const Ref done = Ref::steal(recorder.call_object(a, {method, args + 1, 2, nullptr}));
      if (!done) return nullptr;
    }
  }
  const Ref items = items_of(recorder, a, call.args[1]);
  if (!items) return nullptr;
  PyObject* args[] = {nullptr, call.args[0], items.get()};
  return changes_deque(recorder, a, {call.callable, args + 1, 2, nullptr});
}

// ---- defaultdict and Counter ----

PyObject* make_defaultdict(Recorder& recorder, Activation& a, const Call& call) {
  const std::size_t positional = call.positional();
  if (positional > 2 || (positional > 0 && !recorder.touch(call.args[0])) ||
      (positional == 2 && !(PyDict_Check(call.args[1]) && recorder.know_contents(call.args[1])))) {
    return recorder.call_plainly(a, call, "a defaultdict of an object that is not modelled");
  }
  PyObject* made = recorder.call_watched(a, call);
  if (made != nullptr && recorder.is_recording()) recorder.track_local(made);
  return made;
}

// dict.__init__, as subclasses call it through super().
PyObject* dict_init(Recorder& recorder, Activation& a, const Call& call) {
  const Tracked* tracked = call.count == 0 ? nullptr : recorder.find(call.args[0]);
  const std::size_t positional = call.positional();
  const bool is_known =
      tracked != nullptr && tracked->kind == Tracked::Kind::local && positional <= 2 &&
      (positional < 2 || (PyDict_Check(call.args[1]) && recorder.know_contents(call.args[1])));
  if (!is_known || !recorder.before_change(call.args[0])) {
    return recorder.call_plainly(a, call, "dict.__init__ of an object that is not modelled");
  }
  return recorder.call_watched(a, call);
}

// collections._count_elements(mapping, iterable), as Counter calls it.
PyObject* count_elements(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyDict_Check(call.args[0]) || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "elements are counted in an object not modelled");
  }
  const Ref items = items_of(recorder, a, call.args[1]);
  if (!items) return nullptr;
  const Ref zero = Ref::steal(PyLong_FromLong(0));
  const Ref one = Ref::steal(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    if (recorder.is_recording() && !recorder.prepare_key(call.args[0], item)) {
      return recorder.call_plainly(a, call, "elements are counted that are not known");
    }
    const KeyScope hashing(recorder, item);
    PyObject* count = recorder.is_recording() ? recorder.read_item(call.args[0], item)
                                              : PyDict_GetItemWithError(call.args[0], item);
    if (count == nullptr && PyErr_Occurred() != nullptr) return nullptr;
    const Operand before{count == nullptr ? zero.get() : count, nullptr};
    const Ref after = Ref::steal(recorder.binary(a, NB_ADD, before, {one.get(), nullptr}));
    if (!after ||
        !recorder.store_item(a, {call.args[0], nullptr}, {item, nullptr}, {after.get(), nullptr})) {
      return nullptr;
    }
  }
  return Py_NewRef(Py_None);
}

// ---- heapq ----

// heappush(heap, item) and its like: the items of a list are compared and moved.
PyObject* changes_heap(Recorder& recorder, Activation& a, const Call& call) {
  const auto plainly = [&] {
    return recorder.call_plainly(a, call, "a heap whose items are not known");
  };
  if (call.count == 0 || !PyList_CheckExact(call.args[0]) ||
      !recorder.know_contents(call.args[0])) {
    return plainly();
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(call.args[0]); ++i) {
    if (!recorder.know_sortable(PyList_GET_ITEM(call.args[0], i))) return plainly();
  }
  for (std::size_t i = 1; i < call.count; ++i) {
    if (!recorder.know_sortable(call.args[i])) return plainly();
  }
  if (!recorder.before_change(call.args[0])) return plainly();
  PyObject* result = recorder.call_watched(a, call);
  if (recorder.is_recording()) recorder.changed_contents(call.args[0]);
  return result == nullptr ? nullptr : recorder.made(a, result, "a function of heapq");
}

}  // namespace

ModelTable collection_models() {
  return {
      {"collections.deque", make_deque},
      {"collections.deque.append", changes_deque},
      {"collections.deque.appendleft", changes_deque},
      {"collections.deque.pop", changes_deque},
      {"collections.deque.popleft", changes_deque},
      {"collections.deque.clear", changes_deque},
      {"collections.deque.rotate", changes_deque},
      {"collections.deque.reverse", changes_deque},
      {"collections.deque.insert", changes_deque},
      {"collections.deque.copy", reads_deque},
      {"collections.deque.__copy__", reads_deque},
      {"collections.deque.count", reads_deque},
      {"collections.deque.index", reads_deque},
      {"collections.deque.__len__", reads_deque},
      {"collections.deque.extend", extends_deque},
      {"collections.deque.extendleft", extends_deque},
      {"collections.defaultdict", make_defaultdict},
      {"builtins.dict.__init__", dict_init},
      {"collections._count_elements", count_elements},
      {"heapq.heappush", changes_heap},
      {"heapq.heappop", changes_heap},
      {"heapq.heapify", changes_heap},
      {"heapq.heapreplace", changes_heap},
      {"heapq.heappushpop", changes_heap},
      {"bisect.bisect_left", pure_model},
      {"bisect.bisect_right", pure_model},
      {"bisect.bisect", pure_model},
  };
}

}  // namespace assay::capture
