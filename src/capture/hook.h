/// \file The frame-evaluation hook (PEP 523): while installed, every Python frame of the process
/// comes here first.
#pragma once

#include "capture/cpython_311.h"

namespace assay::capture {

/// Evaluates a frame, as the evaluation function of PEP 523 must. It may call `evaluate_natively`.
using FrameHandler = PyObject* (*)(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing);

/// Sends frames to `handler` until `uninstall_hook` was called as often as `install_hook`. All
/// calls name the same handler. Needs the GIL.
void install_hook(FrameHandler handler);
void uninstall_hook();

/// What would have evaluated the frame without us: CPython, or the hook that was installed before
/// ours (stock torch.compile's).
PyObject* evaluate_natively(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing);

/// While it lives, frames of this thread go to CPython: Python code that the recorder itself calls.
class NativeFramesScope {
 public:
  NativeFramesScope();
  ~NativeFramesScope();
  NativeFramesScope(const NativeFramesScope&) = delete;
  NativeFramesScope& operator=(const NativeFramesScope&) = delete;
};

}  // namespace assay::capture
