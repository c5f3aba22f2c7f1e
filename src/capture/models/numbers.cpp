// Functions of numbers that ask a method of their argument: abs, round, divmod, range, index.
#include <string>
#include <vector>

#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// abs(x) and its like: a method of x in Python is followed.
template <const char* const& method>
PyObject* asks_method(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 0 || call.names != nullptr) return recorder.call_pure(a, call);
  PyObject* object = call.args[0];
  if (is_scalar(object) || !recorder.is_python_method(object, method)) {
    return recorder.call_pure(a, call);
  }
  const Ref name = Ref::steal(PyUnicode_InternFromString(method));
  PyObject* function = recorder.lookup_on_type(Py_TYPE(object), name.get());
  recorder.is_constant(function);
  return recorder.call_object(a, {function, call.args, call.count, nullptr});
}

constexpr const char* kAbs = "__abs__";
constexpr const char* kRound = "__round__";
constexpr const char* kDivmod = "__divmod__";
constexpr const char* kFloor = "__floor__";
constexpr const char* kCeil = "__ceil__";
constexpr const char* kTrunc = "__trunc__";
constexpr const char* kIndex = "__index__";
constexpr const char* kPath = "__fspath__";

PyObject* absolute(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !is_tensor(call.args[0])) return asks_method<kAbs>(recorder, a, call);
  static PyObject* const name = PyUnicode_InternFromString("__abs__");
  PyObject* method = recorder.lookup_on_type(Py_TYPE(call.args[0]), name);
  recorder.is_constant(method);
  return recorder.call_object(a, {method, call.args, 1, nullptr});
}

// range(a, b, c) and the like: each argument is asked for its index.
PyObject* of_indices(Recorder& recorder, Activation& a, const Call& call) {
  std::vector<PyObject*> args = {nullptr};
  std::vector<Ref> kept;
  for (std::size_t i = 0; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    if (!is_scalar(argument) && recorder.is_python_method(argument, kIndex)) {
      kept.push_back(Ref::steal(recorder.call_method(a, argument, kIndex, {})));
      if (!kept.back()) return nullptr;
      if (!PyLong_Check(kept.back().get())) return recorder.call_pure(a, call);
      argument = kept.back().get();
      recorder.use_sizes(argument);
    }
    args.push_back(argument);
  }
  const Call with_indices{call.callable, args.data() + 1, call.count, call.names};
  return recorder.is_recording() ? recorder.call_pure(a, with_indices)
                                 : recorder.call_object(a, with_indices);
}

// str.join(separator, iterable): of any iterable.
PyObject* join(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2) return recorder.call_watched(a, call);  // raises
  const Ref items = items_of(recorder, a, call.args[1]);
  if (!items) return nullptr;
  PyObject* args[] = {nullptr, call.args[0], items.get()};
  const Call with_items{call.callable, args + 1, 2, nullptr};
  return recorder.is_recording() ? recorder.call_pure(a, with_items)
                                 : recorder.call_object(a, with_items);
}

}  // namespace

ModelTable number_models() {
  return {
      {"builtins.abs", absolute},
      {"operator.abs", absolute},
      {"builtins.round", asks_method<kRound>},
      {"builtins.divmod", asks_method<kDivmod>},
      {"math.floor", asks_method<kFloor>},
      {"math.ceil", asks_method<kCeil>},
      {"math.trunc", asks_method<kTrunc>},
      {"operator.index", of_indices},
      {"builtins.range", of_indices},
      {"posix.fspath", asks_method<kPath>},
      {"builtins.str.join", join},
  };
}

}  // namespace assay::capture
