/// \file The items of a dict in the order in which Python code sees them. An OrderedDict keeps an
/// order of its own, which the functions of the C API for dicts do not follow.
#pragma once

#include "capture/ref.h"

namespace assay::capture {

/// A new plain dict with these items in that order; null with an exception set.
Ref copy_in_order(PyObject* dict);
/// The keys in that order, a new list; null with an exception set.
Ref keys_in_order(PyObject* dict);

}  // namespace assay::capture
