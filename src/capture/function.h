/// \file `assay._C.CapturedFunction`: a Python function whose frames are captured. What
/// `assay.compile` returns is one; calling it calls the function inside a CaptureScope.
#pragma once

#include <Python.h>

#include <memory>

#include "capture/segment_cache.h"

namespace assay::capture {

/// The type; made at the first call. A new reference, or null with an exception set.
PyTypeObject* captured_function_type();
/// A new CapturedFunction of any callable.
PyObject* make_captured_function(PyObject* function, std::shared_ptr<SegmentCache> cache);
/// The parts of a CapturedFunction; null for another object.
SegmentCache* cache_of(PyObject* captured);
PyObject* function_of(PyObject* captured);  ///< Borrowed.

/// Drops the segments of all functions: assay.reset().
void reset_all();

}  // namespace assay::capture
