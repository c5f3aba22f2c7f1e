/// \file What guards on Python objects compare: a check answers whether an object is still as it
/// was when its segment was recorded, and leaves no exception behind. Used by SegmentGuards.
#pragma once

#include <Python.h>

namespace assay::capture {

/// `left == right`, and false where that raises.
bool is_equal(PyObject* left, PyObject* right);
/// A number, string, set, device, ... of the same type and value.
bool same_value(PyObject* object, PyObject* expected);
/// An int that a graph can take.
bool is_int64(PyObject* object);
/// `len(object)`; -1 if it has none.
Py_ssize_t length_of(PyObject* object);
/// A dict with these keys, a tuple, in this order.
bool same_keys(PyObject* dict, PyObject* keys);
/// A set that gives these items, a tuple, in this order.
bool same_order(PyObject* set, PyObject* items);
/// A function with the same (code, defaults or None, keyword defaults or None, globals).
bool same_function(PyObject* object, PyObject* expected);

}  // namespace assay::capture
