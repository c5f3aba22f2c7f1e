// Exceptions as objects: their constructors, their text, and which one is being handled.
#include "capture/cpython_311.h"
#include "capture/models/table.h"

namespace assay::capture {

namespace {

// BaseException.__init__ and __new__ of an exception that is made in this segment.
PyObject* initialize(Recorder& recorder, Activation& a, const Call& call) {
  const Tracked* tracked = call.count == 0 ? nullptr : recorder.find(call.args[0]);
  bool is_known = tracked != nullptr && tracked->kind == Tracked::Kind::local;
  for (std::size_t i = 1; i < call.count; ++i) is_known = recorder.touch(call.args[i]) && is_known;
  if (!is_known) return recorder.call_plainly(a, call, "__init__ of an unknown exception");
  return recorder.call_watched(a, call);
}

PyObject* create(Recorder& recorder, Activation& a, const Call& call) {
  PyObject* made = recorder.call_watched(a, call);
  if (made != nullptr && recorder.is_recording()) recorder.track_local(made);
  return made;
}

// str() and repr() of an exception that is made in this segment, of values.
PyObject* text(Recorder& recorder, Activation& a, const Call& call) {
  const Tracked* tracked = call.count != 1 ? nullptr : recorder.find(call.args[0]);
  if (tracked == nullptr || tracked->kind != Tracked::Kind::local ||
      !has_known_text(recorder, call.args[0])) {
    return recorder.call_plainly(a, call, "the text of an unknown exception");
  }
  return recorder.call_watched(a, call);
}

// exception.with_traceback(None) and add_note(text): of exceptions made in this segment.
PyObject* changes_exception(Recorder& recorder, Activation& a, const Call& call) {
  const Tracked* tracked = call.count == 0 ? nullptr : recorder.find(call.args[0]);
  if (tracked == nullptr || tracked->kind != Tracked::Kind::local) {
    return recorder.call_plainly(a, call, "an unknown exception is changed");
  }
  return recorder.made(a, recorder.call_watched(a, call), "a method of an exception");
}

// sys.exc_info() and sys.exception() where nothing is being handled.
PyObject* handled(Recorder& recorder, Activation& a, const Call& call) {
  const _PyErr_StackItem* top = _PyErr_GetTopmostException(PyThreadState_Get());
  if (top->exc_value != nullptr && top->exc_value != Py_None) {
    return recorder.call_plainly(a, call, "the exception that is being handled");
  }
  recorder.depends_on_no_exception();
  return recorder.made(a, recorder.call_watched(a, call), "sys.exc_info()");
}

void add_methods(ModelTable& table) {
  Py_ssize_t position = 0;
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  const Ref module = Ref::steal(import_module("builtins"));
  while (PyDict_Next(PyModule_GetDict(module.get()), &position, &name, &value) != 0) {
    if (!PyExceptionClass_Check(value)) continue;
    const auto add = [&](const char* method, Model model) {
      if (PyDict_GetItemString(reinterpret_cast<PyTypeObject*>(value)->tp_dict, method) ==
          nullptr) {
        return;
      }
      auto* text_of = new std::string("builtins." + to_string(name) + "." + method);
      table.push_back({text_of->c_str(), model});  // as long as the table lives
    };
    add("__init__", initialize);
    add("__new__", create);
    add("__str__", text);
    add("__repr__", text);
  }
}

}  // namespace

bool has_known_text(Recorder& recorder, PyObject* exception) {
  const Ref args = Ref::steal(PyObject_GetAttrString(exception, "args"));
  if (!args || !PyTuple_CheckExact(args.get())) {
    PyErr_Clear();
    return false;
  }
  return recorder.is_local(args.get()) && recorder.has_only_values(args.get());
}

ModelTable exception_models() {
  ModelTable table = {
      {"sys.exc_info", handled},
      {"sys.exception", handled},
      {"builtins.BaseException.with_traceback", changes_exception},
      {"builtins.BaseException.add_note", changes_exception},
  };
  add_methods(table);
  return table;
}

}  // namespace assay::capture
