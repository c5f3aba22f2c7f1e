/// \file Which objects the recorder guards by identity, and which it can rebuild by their type.
#pragma once

#include <Python.h>

#include "capture/ref.h"

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
/// Instances of the type are what object.__new__ makes, with a __dict__ or slots of __slots__.
bool has_object_layout(PyTypeObject* type);
/// A list of the descriptors of a type's __slots__.
Ref slots_of(PyTypeObject* type);

PyTypeObject* deque_type();
PyTypeObject* defaultdict_type();
PyTypeObject* partial_type();
/// torch.return_types.max and its like: tuples that are made by C code.
bool is_struct_sequence(const PyTypeObject* type);
/// operator.itemgetter, attrgetter or methodcaller.
bool is_operator_getter(PyObject* object);
/// A list or tuple, or of a subclass.
bool is_sequence(PyObject* object);
/// A list, tuple, dict or set, or of a subclass.
bool is_container(PyObject* object);
/// A list or tuple, or of a subclass that reads its items as they do.
bool has_builtin_items(PyObject* object);
/// dict, OrderedDict, defaultdict: those whose items are set as dict does.
bool is_builtin_dict(PyObject* object);

}  // namespace assay::capture
