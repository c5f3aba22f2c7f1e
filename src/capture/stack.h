/// \file Moving values on the stack of an activation together with their origins. Used by the loop.
#pragma once

#include "capture/activation.h"

namespace assay::capture {

inline Source*& origin_of(Activation& a, PyObject** slot) { return a.origins[slot - a.locals]; }

/// Takes the reference.
inline void push(Activation& a, PyObject* value, Source* origin = nullptr) {
  origin_of(a, a.top) = origin;
  *a.top++ = value;
}

/// The value at `depth`; 1 is the top of the stack.
inline Operand peek(Activation& a, int depth) {
  PyObject** slot = a.top - depth;
  return {*slot, origin_of(a, slot)};
}

inline PyObject* object_at(const Activation& a, int depth) { return a.top[-depth]; }

/// Pops the top value and gives its reference to the caller.
inline PyObject* take(Activation& a) { return *--a.top; }

/// Pops the `count` topmost values, the deepest first. Nulls (PUSH_NULL) count as values.
inline void drop(Activation& a, int count) {
  a.top -= count;
  for (int i = 0; i < count; ++i) Py_XDECREF(a.top[i]);
}

/// Replaces the `count` topmost values by `result`, whose reference it takes. Returns false, and
/// leaves the stack alone, if there is no result because an exception is set.
inline bool replace(Activation& a, int count, PyObject* result, Source* origin = nullptr) {
  if (result == nullptr) return false;
  drop(a, count);
  push(a, result, origin);
  return true;
}

/// As `replace` for instructions without a result.
inline bool consume(Activation& a, int count, bool done) {
  if (done) drop(a, count);
  return done;
}

/// The local's old value is released last: its destructor may look at the frame.
inline void set_local(Activation& a, int index, PyObject* value, Source* origin = nullptr) {
  PyObject* old = a.locals[index];
  a.locals[index] = value;
  a.origins[index] = origin;
  Py_XDECREF(old);
}

}  // namespace assay::capture
