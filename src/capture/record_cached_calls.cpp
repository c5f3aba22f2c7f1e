// Calls of functions that functools.lru_cache keeps the results of, and of functions that log.
#include <algorithm>
#include <string>

#include "capture/callables.h"
#include "capture/constant_objects.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

// A program may tell its function to forget its results, and it has effects then: it is asked again
// whether it returns the same. That counts as a hit, so it is not done where a break is allowed.
// With objects it is called in every run, as PyTorch does: its cache is left alone.
PyObject* Recorder::call_program_cache(Activation& a, const Call& call) {
  guard_identity(call.callable);
  const bool has_values_only =
      call.names == nullptr && std::all_of(call.args, call.args + call.count, is_scalar);
  if (!has_values_only) {
    static PyObject* const wrapped = PyUnicode_InternFromString("__wrapped__");
    const Ref function = Ref::steal(PyObject_GetAttr(call.callable, wrapped));
    if (!function) return nullptr;
    found_fixed(function.get());
    return call_object(a, {function.get(), call.args, call.count, call.names});
  }
  use_sizes(call, SizeUse::all);
  Ref key = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(call.count) + 1));
  PyTuple_SET_ITEM(key.get(), 0, Py_NewRef(call.callable));
  for (std::size_t i = 0; i < call.count; ++i) {
    PyTuple_SET_ITEM(key.get(), static_cast<Py_ssize_t>(i) + 1, Py_NewRef(call.args[i]));
  }
  PyObject* result = call_unseen(call);
  if (result == nullptr) return nullptr;
  if (!arrived(result, sources_.get(Access::answer, nullptr, key.get())) &&
      !stop(a, "the cached " + name_of(call.callable) + " returns an object")) {
    Py_CLEAR(result);
  }
  return result;
}

PyObject* Recorder::call_logging(Activation& a, const Call& call) {
  guard_identity(call.callable);
  for (std::size_t i = 0; i < call.count; ++i) {
    // Other objects would be logged as they are when the graph has run.
    const bool is_known = is_scalar(call.args[i]) ||
                          (is_tensor(call.args[i]) && touch(call.args[i])) ||
                          is_identity_object(call.args[i]) || has_only_values(call.args[i]);
    if (!is_known) return call_plainly(a, call, "an object is logged that is not known");
    if (!is_tensor(call.args[i])) is_local(call.args[i]);
  }
  const std::size_t positional = call.positional();
  const Ref args = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  const Ref named = call.names == nullptr ? Ref() : Ref::steal(PyDict_New());
  for (std::size_t i = 0; i < call.count; ++i) {
    if (i < positional) {
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), Py_NewRef(call.args[i]));
    } else {
      PyDict_SetItem(named.get(),
                     PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional)),
                     call.args[i]);
    }
  }
  track_local(args.get());
  if (named) track_local(named.get());
  PyObject* result = call_unseen(call);
  if (result != Py_None) return made(a, result, "a function that logs");
  effects_.push_back({Effect::Kind::call, named, Ref::borrow(call.callable), args});
  return result;
}

PyObject* Recorder::call_cached(Activation& a, const Call& call, bool may_run_operators) {
  guard_identity(call.callable);
  use_sizes(call, SizeUse::all);
  for (std::size_t i = 0; i < call.count; ++i) {
    if (is_scalar(call.args[i])) continue;
    if (!touch(call.args[i]) || is_tensor(call.args[i]) ||
        tracked_.find(call.args[i])->source == nullptr) {
      return call_plainly(a, call, "a call of " + name_of(call.callable) + " with a new object");
    }
    guard_identity(call.args[i]);
  }
  if (may_run_operators) return made(a, call_unseen(call), "a function with a constant result");
  const SuspendScope suspended(*this);
  return made(a, call_watched(a, call), "a cached function");
}

}  // namespace assay::capture
