/// \file The only header that includes CPython's internals, those of 3.11. What C++ cannot include
/// (`pycore_interp.h` needs C's atomics) is behind the functions of cpython_311.c.
#pragma once

#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#error "the capture room is written for CPython 3.11"
#endif

// CPython's inline functions do not compile without warnings as C++.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
// Only for these headers: the macro changes what the public ones declare.
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_genobject.h>
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

#ifdef __cplusplus
extern "C" {
#endif

/// Per opcode: the one it was specialized from (itself for most), and the number of cache entries
/// behind the instruction. In opcode_tables.c.
extern const uint8_t _PyOpcode_Deopt[256];
extern const uint8_t _PyOpcode_Caches[256];

/// Not zero when somebody wants the thread's attention; read it with `is_interrupted`.
const int* assay_eval_breaker(PyThreadState* thread);
/// Does what the evaluation loop must do when the breaker is set: signals, pending calls, releasing
/// the GIL, asynchronous exceptions. Returns -1 with an exception set, or 0.
int assay_handle_pending(PyThreadState* thread);
/// Called when the recursion counter has run out; -1 if that is an error (which is then set).
int assay_check_recursion(PyThreadState* thread);
/// The attribute of the object's type, bound to the object: a new reference, or null (an exception
/// is set unless there is no such attribute).
PyObject* assay_lookup_special(PyObject* object, PyObject* name);

#ifdef __cplusplus
}

namespace assay::capture {

inline bool is_interrupted(const int* eval_breaker) {
  return __atomic_load_n(eval_breaker, __ATOMIC_RELAXED) != 0;
}

inline PyObject* name_at(const PyCodeObject* code, int index) {
  return PyTuple_GET_ITEM(code->co_names, index);
}

inline PyObject* constant_at(const PyCodeObject* code, int index) {
  return PyTuple_GET_ITEM(code->co_consts, index);
}

inline PyObject* local_name_at(const PyCodeObject* code, int index) {
  return PyTuple_GET_ITEM(code->co_localsplusnames, index);
}

}  // namespace assay::capture
#endif
