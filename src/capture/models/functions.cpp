// Callables that hold other callables or names: functools.partial, operator.itemgetter and its
// like, bound methods; and functions that C code calls back.
#include <string>
#include <vector>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models/table.h"

namespace assay::capture {

namespace {

// functools.partial(function, ...): what it holds is known. One of another partial takes what that
// holds.
PyObject* make_partial(Recorder& recorder, Activation& a, const Call& call) {
  bool is_known = call.positional() > 0;
  for (std::size_t i = 0; i < call.count; ++i) is_known = recorder.touch(call.args[i]) && is_known;
  if (is_known && Py_TYPE(call.args[0]) == partial_type()) {
    is_known = recorder.know_partial(a, call.args[0]);
  }
  if (!is_known) return recorder.call_plainly(a, call, "functools.partial of an unknown object");
  PyObject* made = recorder.call_watched(a, call);
  if (made == nullptr || !recorder.is_recording()) return made;
  for (const char* name : {"args", "keywords"}) {
    const Ref part = Ref::steal(PyObject_GetAttrString(made, name));
    if (!part) return nullptr;
    recorder.track_local(part.get());
  }
  recorder.track_local(made);
  return made;
}

// operator.itemgetter(1, 2), attrgetter("a.b"), methodcaller("name", 1): of values.
PyObject* make_getter(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (call.names != nullptr || !is_scalar(call.args[i])) {
      return recorder.call_plainly(a, call, "a getter of an object that is not modelled");
    }
  }
  PyObject* made = recorder.call_watched(a, call);
  if (made != nullptr && recorder.is_recording()) recorder.track_local(made);
  return made;
}

PyObject* get_dotted(Recorder& recorder, Activation& a, PyObject* object, PyObject* names) {
  const Ref dot = Ref::steal(PyUnicode_FromString("."));
  const Ref parts = Ref::steal(PyUnicode_Split(names, dot.get(), -1));
  Ref found = Ref::borrow(object);
  for (Py_ssize_t i = 0; parts && found && i < PyList_GET_SIZE(parts.get()); ++i) {
    PyObject* name = Py_NewRef(PyList_GET_ITEM(parts.get(), i));
    PyUnicode_InternInPlace(&name);
    const Ref kept = Ref::steal(name);
    found = Ref::steal(recorder.is_recording() ? recorder.get_attribute(a, found.get(), name)
                                               : PyObject_GetAttr(found.get(), name));
  }
  return found.release();
}

PyObject* make_method(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !recorder.touch(call.args[0]) || !recorder.touch(call.args[1]) ||
      !PyFunction_Check(call.args[0])) {
    return recorder.call_plainly(a, call, "types.MethodType of an unknown object");
  }
  return recorder.made(a, recorder.call_watched(a, call), "types.MethodType");
}

}  // namespace

PyObject* call_getter(Recorder& recorder, Activation& a, const Call& call) {
  recorder.guard_identity(call.callable);  // it does not change
  const std::string kind = Py_TYPE(call.callable)->tp_name;
  const Ref reduced = Ref::steal(PyObject_CallMethod(call.callable, "__reduce__", nullptr));
  if (!reduced) return nullptr;
  PyObject* args = PyTuple_GET_ITEM(reduced.get(), 1);
  const bool is_method = kind == "operator.methodcaller";
  const bool has_keywords = is_method && PyTuple_GET_ITEM(reduced.get(), 0) !=
                                             reinterpret_cast<PyObject*>(Py_TYPE(call.callable));
  if (call.count != 1 || call.names != nullptr || has_keywords) {
    return recorder.call_plainly(a, call, "a methodcaller with keywords");
  }
  PyObject* object = call.args[0];
  if (is_method) {
    const Ref method = Ref::steal(get_dotted(recorder, a, object, PyTuple_GET_ITEM(args, 0)));
    if (!method) return nullptr;
    std::vector<PyObject*> all = {nullptr};
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(args); ++i) {
      all.push_back(PyTuple_GET_ITEM(args, i));
    }
    return recorder.call_object(a, {method.get(), all.data() + 1, all.size() - 1, nullptr});
  }
  std::vector<Ref> found;
  std::vector<PyObject*> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* key = PyTuple_GET_ITEM(args, i);
    found.push_back(Ref::steal(kind == "operator.attrgetter"
                                   ? get_dotted(recorder, a, object, key)
                                   : recorder.load_item(a, {object, nullptr}, {key, nullptr})));
    if (!found.back()) return nullptr;
    items.push_back(found.back().get());
  }
  if (items.size() == 1) return found[0].release();
  const std::vector<Source*> origins(items.size(), nullptr);
  return recorder.build_tuple(a, items.data(), origins.data(), items.size());
}

Ref followed(Recorder& recorder, PyObject* callable) {
  static PyObject* const wrap = [] {
    PyObject* globals = PyDict_New();
    PyDict_SetItemString(globals, "__builtins__", Ref::steal(import_module("builtins")).get());
    constexpr const char* source =
        "def wrap(function):\n"
        "  return lambda *args: function(*args)\n";
    const Ref run = Ref::steal(PyRun_String(source, Py_file_input, globals, globals));
    return PyDict_GetItemString(globals, "wrap");  // lives as long as the process
  }();
  Ref function;
  {
    const SuspendScope suspended(recorder);
    function = Ref::steal(PyObject_CallOneArg(wrap, callable));
  }
  if (!function) return {};
  recorder.track_local(function.get());
  PyObject* closure = reinterpret_cast<PyFunctionObject*>(function.get())->func_closure;
  recorder.track_local(closure);
  recorder.track_local(PyTuple_GET_ITEM(closure, 0));
  return function;
}

ModelTable function_models() {
  return {
      {"functools.partial", make_partial},  {"operator.itemgetter", make_getter},
      {"operator.attrgetter", make_getter}, {"operator.methodcaller", make_getter},
      {"types.MethodType", make_method},
  };
}

}  // namespace assay::capture
