// The standard library: functools, operator, itertools, collections, copy, contextlib.
#include <string>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

// operator.add(a, b) and its like are the operators.
template <int op>
PyObject* binary_operator(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || call.names != nullptr) return recorder.call_watched(a, call);  // raises
  return recorder.binary(a, op, {call.args[0], nullptr}, {call.args[1], nullptr});
}

template <int op>
PyObject* comparison(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || call.names != nullptr) return recorder.call_watched(a, call);
  return recorder.compare(a, op, {call.args[0], nullptr}, {call.args[1], nullptr});
}

template <Unary op>
PyObject* unary_operator(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_watched(a, call);
  return recorder.unary(a, op, {call.args[0], nullptr});
}

PyObject* getitem(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);
  return recorder.load_item(a, {call.args[0], nullptr}, {call.args[1], nullptr});
}

PyObject* setitem(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 3) return recorder.call_watched(a, call);
  const bool stored = recorder.store_item(a, {call.args[0], nullptr}, {call.args[1], nullptr},
                                          {call.args[2], nullptr});
  return stored ? Py_NewRef(Py_None) : nullptr;
}

PyObject* contains(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);
  return recorder.contains(a, {call.args[1], nullptr}, {call.args[0], nullptr}, false);
}

PyObject* truth_of(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1) return recorder.call_watched(a, call);  // raises
  const int is_true = recorder.is_true(a, {call.args[0], nullptr});
  return is_true < 0 ? nullptr : truth(is_true == 1);
}

PyObject* reduce(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count < 2 || call.count > 3) return recorder.call_watched(a, call);
  const Ref iterator = Ref::steal(recorder.get_iter(a, {call.args[1], nullptr}));
  if (!iterator) return nullptr;
  Ref total = call.count == 3 ? Ref::borrow(call.args[2])
                              : Ref::steal(recorder.next(a, {iterator.get(), nullptr}));
  if (!total) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_TypeError, "reduce() of empty iterable with no initial value");
    }
    return nullptr;
  }
  while (true) {
    const Ref item = Ref::steal(recorder.next(a, {iterator.get(), nullptr}));
    if (!item) break;
    PyObject* args[] = {nullptr, total.get(), item.get()};
    total = Ref::steal(recorder.call_object(a, {call.args[0], args + 1, 2, nullptr}));
    if (!total) return nullptr;
  }
  return PyErr_Occurred() != nullptr ? nullptr : total.release();
}

// What an iterator calls back unseen: Python functions, which are followed, and functions of
// values.
bool may_be_called_back(PyObject* object) {
  return PyFunction_Check(object) || PyMethod_Check(object) || find_model(object) == pure_model;
}

// itertools: made of iterators over known things. Of the callables, only those that may be called
// back; keywords (fillvalue, initial, ...) are taken as they are.
PyObject* make_itertool(Recorder& recorder, Activation& a, const Call& call) {
  std::vector<PyObject*> args = {nullptr};
  std::vector<Ref> kept;
  for (std::size_t i = 0; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    const bool is_callable =
        PyCallable_Check(argument) != 0 && Py_TYPE(argument)->tp_iter == nullptr;
    if (is_callable && !may_be_called_back(argument)) {
      kept.push_back(followed(recorder, argument));
      if (!kept.back()) return nullptr;
      argument = kept.back().get();
    }
    if (is_scalar(argument) || is_callable || i >= call.positional()) {
      if (!recorder.touch(argument)) {
        return recorder.call_plainly(a, call, "itertools with an unknown object");
      }
      args.push_back(argument);
      continue;
    }
    if (PyCallable_Check(argument) != 0 && Py_TYPE(argument)->tp_iter == nullptr) {
      // A function in C would be called unseen.
      return recorder.call_plainly(a, call, "an itertool that calls a builtin function");
    }
    kept.push_back(Ref::steal(recorder.get_iter(a, {argument, nullptr})));
    if (!kept.back()) return nullptr;
    args.push_back(kept.back().get());
    if (recorder.is_recording() && !recorder.may_be_advanced(args.back())) {
      return recorder.call_plainly(a, call, "an iterator from before the segment is advanced");
    }
  }
  if (!recorder.is_recording()) {
    return PyObject_Vectorcall(call.callable, args.data() + 1, call.positional(), call.names);
  }
  return recorder.made(
      a, recorder.call_watched(a, {call.callable, args.data() + 1, args.size() - 1, call.names}),
      "an iterator");
}

// Whether the items of an iterable are known that C code iterates over, too. What an iterator gives
// is seen only when C code has it.
bool know_inner_items(Recorder& recorder, PyObject* iterable) {
  if (is_scalar(iterable)) return true;
  if (!is_sequence(iterable)) return is_builtin_iterator(iterable) && recorder.touch(iterable);
  if (!recorder.know_contents(iterable)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(iterable); ++i) {
    if (!recorder.know_given_items(PySequence_Fast_GET_ITEM(iterable, i))) return false;
  }
  return true;
}

PyObject* starmap(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);  // raises
  if (!know_inner_items(recorder, call.args[1])) {
    return recorder.call_plainly(a, call, "itertools.starmap of arguments that are not known");
  }
  return make_itertool(recorder, a, call);
}

// Without a function it adds, which may be of tensors.
PyObject* accumulate(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const add = [] {
    const Ref module = Ref::steal(import_module("operator"));
    return PyObject_GetAttrString(module.get(), "add");
  }();
  if (call.positional() != 1) return make_itertool(recorder, a, call);
  for (std::size_t i = 1; i < call.count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - 1));
    if (PyUnicode_CompareWithASCIIString(name, "func") == 0)
      return make_itertool(recorder, a, call);
  }
  recorder.is_constant(add);
  std::vector<PyObject*> args = {nullptr, call.args[0], add};
  args.insert(args.end(), call.args + 1, call.args + call.count);
  return make_itertool(recorder, a, {call.callable, args.data() + 1, call.count + 1, call.names});
}

// A class method: its class comes first.
PyObject* chain_from_iterable(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 0) return recorder.call_watched(a, call);  // raises
  if (call.count == 2 && is_sequence(call.args[1]) && !know_inner_items(recorder, call.args[1])) {
    return recorder.call_plainly(a, call, "itertools.chain of iterables that are not known");
  }
  const Ref bound = Ref::steal(PyObject_GetAttrString(call.args[0], "from_iterable"));
  if (!bound) return nullptr;
  return make_itertool(recorder, a, {bound.get(), call.args + 1, call.count - 1, call.names});
}

PyObject* repeat(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 0 || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "itertools.repeat of an unknown object");
  }
  return recorder.made(a, recorder.call_watched(a, call), "an iterator");
}

template <bool invert>
PyObject* identity(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);  // raises
  return recorder.is(a, {call.args[0], nullptr}, {call.args[1], nullptr}, invert);
}

PyObject* delitem(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);  // raises
  const bool deleted = recorder.delete_item(a, {call.args[0], nullptr}, {call.args[1], nullptr});
  return deleted ? Py_NewRef(Py_None) : nullptr;
}

// countOf and indexOf: the items are compared with the argument.
PyObject* finds_item(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);  // raises
  const Ref items = items_of(recorder, a, call.args[0]);
  if (!items) return nullptr;
  PyObject* args[] = {nullptr, items.get(), call.args[1]};
  const Call with_items{call.callable, args + 1, 2, nullptr};
  for (Py_ssize_t i = 0; recorder.is_recording() && i < PyList_GET_SIZE(items.get()); ++i) {
    if (!recorder.know_comparable(PyList_GET_ITEM(items.get(), i), call.args[1])) {
      return recorder.call_plainly(a, with_items, "items are compared by values");
    }
  }
  return recorder.call_watched(a, with_items);
}

PyObject* call_it(Recorder& recorder, Activation& a, const Call& call) {
  if (call.positional() == 0) return recorder.call_watched(a, call);  // raises
  return recorder.call_object(a, {call.args[0], call.args + 1, call.count - 1, call.names});
}

// Of an iterator from elsewhere it would not be seen who advances it.
PyObject* tee(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 0 || PyIter_Check(call.args[0])) {
    return recorder.call_plainly(a, call, "itertools.tee of an iterator");
  }
  return make_itertool(recorder, a, call);
}

// functools.cached_property.__get__(descriptor, object, type): its lock keeps out other threads.
PyObject* get_cached_property(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const attribute_name = PyUnicode_InternFromString("attrname");
  static PyObject* const function_name = PyUnicode_InternFromString("func");
  if (call.count < 2 || call.names != nullptr || !recorder.touch(call.args[1])) {
    return recorder.call_plainly(a, call, "a cached_property of an unknown object");
  }
  if (call.args[1] == Py_None) return Py_NewRef(call.args[0]);
  const Ref name = Ref::steal(recorder.get_attribute(a, call.args[0], attribute_name));
  const Ref function = Ref::steal(recorder.get_attribute(a, call.args[0], function_name));
  PyObject* dict = is_scalar(call.args[1]) ? nullptr : recorder.dict_of(call.args[1]);
  if (!name || !function) return nullptr;
  if (dict == nullptr || !PyUnicode_Check(name.get()) || !recorder.is_recording()) {
    return recorder.call_plainly(a, call, "a cached_property without a place for its value");
  }
  PyObject* known = recorder.read_item(dict, name.get());
  if (known != nullptr || PyErr_Occurred() != nullptr) return Py_XNewRef(known);
  PyObject* args[] = {nullptr, call.args[1]};
  const Ref kept = Ref::borrow(dict);
  Ref value = Ref::steal(recorder.call_object(a, {function.get(), args + 1, 1, nullptr}));
  if (!value ||
      !recorder.store_item(a, {dict, nullptr}, {name.get(), nullptr}, {value.get(), nullptr})) {
    return nullptr;
  }
  return value.release();
}

}  // namespace

ModelTable library_models() {
  return {
      {"operator.add", binary_operator<NB_ADD>},
      {"operator.sub", binary_operator<NB_SUBTRACT>},
      {"operator.mul", binary_operator<NB_MULTIPLY>},
      {"operator.truediv", binary_operator<NB_TRUE_DIVIDE>},
      {"operator.floordiv", binary_operator<NB_FLOOR_DIVIDE>},
      {"operator.mod", binary_operator<NB_REMAINDER>},
      {"operator.pow", binary_operator<NB_POWER>},
      {"operator.matmul", binary_operator<NB_MATRIX_MULTIPLY>},
      {"operator.and_", binary_operator<NB_AND>},
      {"operator.or_", binary_operator<NB_OR>},
      {"operator.xor", binary_operator<NB_XOR>},
      {"operator.lshift", binary_operator<NB_LSHIFT>},
      {"operator.rshift", binary_operator<NB_RSHIFT>},
      {"operator.iadd", binary_operator<NB_INPLACE_ADD>},
      {"operator.isub", binary_operator<NB_INPLACE_SUBTRACT>},
      {"operator.imul", binary_operator<NB_INPLACE_MULTIPLY>},
      {"operator.itruediv", binary_operator<NB_INPLACE_TRUE_DIVIDE>},
      {"operator.lt", comparison<Py_LT>},
      {"operator.le", comparison<Py_LE>},
      {"operator.eq", comparison<Py_EQ>},
      {"operator.ne", comparison<Py_NE>},
      {"operator.gt", comparison<Py_GT>},
      {"operator.ge", comparison<Py_GE>},
      {"operator.neg", unary_operator<Unary::negative>},
      {"operator.pos", unary_operator<Unary::positive>},
      {"operator.invert", unary_operator<Unary::invert>},
      {"operator.not_", unary_operator<Unary::logical_not>},
      {"operator.getitem", getitem},
      {"operator.setitem", setitem},
      {"operator.contains", contains},
      {"operator.truth", truth_of},
      {"operator.is_", identity<false>},
      {"operator.is_not", identity<true>},
      {"operator.delitem", delitem},
      {"operator.countOf", finds_item},
      {"operator.indexOf", finds_item},
      {"operator.length_hint", pure_model},
      {"operator.concat", binary_operator<NB_ADD>},
      {"operator.iconcat", binary_operator<NB_INPLACE_ADD>},
      {"operator.iand", binary_operator<NB_INPLACE_AND>},
      {"operator.ior", binary_operator<NB_INPLACE_OR>},
      {"operator.ixor", binary_operator<NB_INPLACE_XOR>},
      {"operator.ifloordiv", binary_operator<NB_INPLACE_FLOOR_DIVIDE>},
      {"operator.imod", binary_operator<NB_INPLACE_REMAINDER>},
      {"operator.ipow", binary_operator<NB_INPLACE_POWER>},
      {"operator.imatmul", binary_operator<NB_INPLACE_MATRIX_MULTIPLY>},
      {"operator.call", call_it},
      {"functools.cached_property.__get__", get_cached_property},
      {"functools.reduce", reduce},
      {"itertools.chain", make_itertool},
      {"itertools.count", make_itertool},
      {"itertools.product", make_itertool},
      {"itertools.islice", make_itertool},
      {"itertools.accumulate", accumulate},
      {"itertools.zip_longest", make_itertool},
      {"itertools.starmap", starmap},
      {"itertools.permutations", make_itertool},
      {"itertools.combinations", make_itertool},
      {"itertools.combinations_with_replacement", make_itertool},
      {"itertools.groupby", make_itertool},
      {"itertools.tee", tee},
      {"itertools.cycle", make_itertool},
      {"itertools.takewhile", make_itertool},
      {"itertools.dropwhile", make_itertool},
      {"itertools.pairwise", make_itertool},
      {"itertools.compress", make_itertool},
      {"itertools.filterfalse", make_itertool},
      {"itertools.chain.from_iterable", chain_from_iterable},
      {"itertools.repeat", repeat},
  };
}

}  // namespace assay::capture
