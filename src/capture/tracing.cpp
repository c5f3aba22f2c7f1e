#include "capture/tracing.h"

namespace assay::capture {

void report_unwound(Activation& a) {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr || a.thread->c_profilefunc == nullptr || a.thread->tracing != 0) return;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyThreadState_EnterTracing(a.thread);
  const int failed =
      a.thread->c_profilefunc(a.thread->c_profileobj, frame, PyTrace_RETURN, nullptr);
  PyThreadState_LeaveTracing(a.thread);
  if (failed == 0) {
    PyErr_Restore(type, value, traceback);
    return;
  }
  // The profiler's exception takes the place of the frame's, as in CPython.
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

}  // namespace assay::capture
