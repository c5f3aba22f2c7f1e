#include "capture/logging_functions.h"

#include "capture/hook.h"
#include "capture/ref.h"

namespace assay::capture {

namespace {

// Guarded by the GIL.
struct Functions {
  Ref reordered;
  Ref ignored;
};

Functions& functions() {
  static auto* const sets = new Functions;
  return *sets;
}

bool holds(const Ref& set, PyObject* callable) {
  if (!set || !PyAnySet_Check(set.get()) || PySet_GET_SIZE(set.get()) == 0) return false;
  const NativeFramesScope native;  // an object may have a __hash__ of its own
  const int is_there = PySet_Contains(set.get(), callable);
  if (is_there < 0) PyErr_Clear();  // cannot be in a set
  return is_there == 1;
}

}  // namespace

void set_logging_functions(PyObject* reordered, PyObject* ignored) {
  functions() = {Ref::borrow(reordered), Ref::borrow(ignored)};
}

Logging logging_of(PyObject* callable) {
  if (holds(functions().ignored, callable)) return Logging::ignored;
  return holds(functions().reordered, callable) ? Logging::reordered : Logging::none;
}

}  // namespace assay::capture
