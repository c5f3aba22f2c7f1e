/* The parts of cpython_311.h that need CPython's interpreter state, which only C can include. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_ceval.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#undef Py_BUILD_CORE

#include "capture/cpython_311.h"

const int* assay_eval_breaker(PyThreadState* thread) {
  return (const int*)&thread->interp->ceval.eval_breaker;
}

/* CPython's own function is hidden. The breaker sums up four requests; taking one back means
 * summing up the others again. */
static void take_back_async_exception(PyInterpreterState* interpreter) {
  struct _ceval_state* state = &interpreter->ceval;
  state->pending.async_exc = 0;
  const int others =
      _Py_atomic_load_relaxed(&state->gil_drop_request) |
      (_Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending) &&
       _Py_ThreadCanHandleSignals(interpreter)) |
      (_Py_atomic_load_relaxed(&state->pending.calls_to_do) && _Py_ThreadCanHandlePendingCalls());
  _Py_atomic_store_relaxed(&state->eval_breaker, others);
}

int assay_handle_pending(PyThreadState* thread) {
  struct _ceval_state* state = &thread->interp->ceval;
  /* Signals, then calls; each only in the thread that may handle it. */
  if ((_Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending) ||
       _Py_atomic_load_relaxed(&state->pending.calls_to_do)) &&
      Py_MakePendingCalls() != 0) {
    return -1;
  }
  if (_Py_atomic_load_relaxed(&state->gil_drop_request)) {
    PyEval_RestoreThread(PyEval_SaveThread());
  }
  if (thread->async_exc != NULL) {
    PyObject* exception = thread->async_exc;
    thread->async_exc = NULL;
    take_back_async_exception(thread->interp);
    PyErr_SetNone(exception);
    Py_DECREF(exception);
    return -1;
  }
  return 0;
}

int assay_check_recursion(PyThreadState* thread) { return _Py_CheckRecursiveCall(thread, ""); }

PyObject* assay_lookup_special(PyObject* object, PyObject* name) {
  return _PyObject_LookupSpecial(object, name);
}
