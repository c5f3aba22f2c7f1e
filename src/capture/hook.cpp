#include "capture/hook.h"

namespace assay::capture {

namespace {

struct Hook {
  FrameHandler handler = nullptr;
  _PyFrameEvalFunction below = _PyEval_EvalFrameDefault;
  int users = 0;
};

// Guarded by the GIL.
Hook& hook() {
  static Hook instance;
  return instance;
}

// The frame that is on its way to a hook below ours. That hook may have been installed on top of
// ours before, and pass what it does not want on to us.
thread_local _PyInterpreterFrame* passed_on = nullptr;

thread_local int native_scopes = 0;

PyObject* evaluate(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  // First: whatever sent the frame below does so again.
  if (passed_on == frame) return _PyEval_EvalFrameDefault(thread, frame, throwing);
  if (native_scopes > 0) return evaluate_natively(thread, frame, throwing);
  if (hook().users == 0) return evaluate_natively(thread, frame, throwing);
  return hook().handler(thread, frame, throwing);
}

}  // namespace

NativeFramesScope::NativeFramesScope() { ++native_scopes; }
NativeFramesScope::~NativeFramesScope() { --native_scopes; }

void install_hook(FrameHandler handler) {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  hook().handler = handler;
  // Also with a user already: somebody may have removed ours while taking theirs away.
  const _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (current != evaluate) {
    hook().below = current;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
  }
  ++hook().users;
}

void uninstall_hook() {
  if (--hook().users > 0) return;
  // If another hook lies on top of ours it keeps a pointer to ours, which then passes everything
  // on.
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate) {
    _PyInterpreterState_SetEvalFrameFunc(interpreter, hook().below);
  }
}

PyObject* evaluate_natively(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  const _PyFrameEvalFunction below = hook().below;
  if (below == _PyEval_EvalFrameDefault) return below(thread, frame, throwing);
  _PyInterpreterFrame* const outer = passed_on;
  passed_on = frame;
  PyObject* result = below(thread, frame, throwing);
  passed_on = outer;
  return result;
}

}  // namespace assay::capture
