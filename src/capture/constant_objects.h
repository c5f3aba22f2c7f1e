/// \file Which objects the recorder guards by identity, and which it can rebuild by their type.
#pragma once

#include <Python.h>

namespace assay::capture {

/// Types, modules, code, builtin functions, descriptors, dtypes, ...: objects that programs share
/// and do not change, so that being the same object says all.
bool is_identity_object(PyObject* object);
/// An iterator of a builtin type that can be rebuilt from its __reduce__(): those over lists,
/// tuples, ranges, dicts; enumerate, zip, map, filter, reversed; itertools'.
bool is_builtin_iterator(PyObject* object);
/// One of those over other iterators: zip, map, enumerate, those of itertools.
bool is_iterator_of_iterators(PyObject* object);

/// The dict of a keys(), values() or items() view; null for other objects.
PyObject* dict_of_view(PyObject* object);
/// Instances of the type are what object.__new__ makes, with a __dict__ and no slots of their own.
bool has_object_layout(PyTypeObject* type);

}  // namespace assay::capture
