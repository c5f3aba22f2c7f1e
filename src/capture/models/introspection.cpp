// Questions about functions that libraries ask: callable(), inspect.signature().
#include "capture/models/table.h"

namespace assay::capture {

namespace {

PyObject* is_callable(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "callable() of an unknown object");
  }
  return recorder.call_watched(a, call);  // follows from the type
}

// What a signature is follows from the function, which is guarded to be this one.
PyObject* signature(Recorder& recorder, Activation& a, const Call& call) {
  PyObject* function = call.count == 1 ? call.args[0] : nullptr;
  if (function != nullptr && PyMethod_Check(function)) {
    recorder.touch(function);
    function = PyMethod_GET_FUNCTION(function);
  }
  if (function == nullptr || !PyFunction_Check(function) || recorder.find(function) == nullptr) {
    return recorder.call_plainly(a, call, "inspect.signature() of an object not modelled");
  }
  recorder.guard_identity(function);
  PyObject* made = nullptr;
  {
    const SuspendScope suspended(recorder);
    made = recorder.call_watched(a, call);
  }
  if (made != nullptr && recorder.is_recording()) recorder.is_constant(made);
  return made;
}

}  // namespace

ModelTable introspection_models() {
  return {
      {"builtins.callable", is_callable},
      {"inspect.signature", signature},
  };
}

}  // namespace assay::capture
