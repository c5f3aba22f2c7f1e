/// \file Functions that a program logs with, and that must not cut its graphs: what it has put into
/// `torch._dynamo.config.reorderable_logging_functions` and `ignore_logging_functions`. Set by
/// `python -m assay`, asked by the recorder for every call.
#pragma once

#include <Python.h>

namespace assay::capture {

enum class Logging {
  none,       ///< A function like any other.
  reordered,  ///< Called when the graph has run, with what its arguments are then.
  ignored,    ///< Not called at all; returns None.
};

/// Two sets, which the program may go on changing, or None.
void set_logging_functions(PyObject* reordered, PyObject* ignored);
Logging logging_of(PyObject* callable);

}  // namespace assay::capture
