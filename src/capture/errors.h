/// \file The errors that CPython's evaluation loop raises itself, with its messages. Called by the
/// loop and by the operations.
#pragma once

#include "capture/cpython_311.h"

namespace assay::capture {

/// NameError: name 'x' is not defined.
void raise_name_error(PyObject* name);

/// A variable (local, cell or free: `index` into localsplus) has no value.
void raise_unbound(const PyCodeObject* code, int index);

/// ImportError of `from module import name`; `package` is the module's name or null.
void raise_cannot_import(PyObject* module, PyObject* package, PyObject* name);

/// Rewords the exception that merging `kwargs` into the keyword arguments of a call has set.
void reword_kwargs_error(PyObject* function, PyObject* kwargs);

/// False, with an exception set, if what stands after `*` in a call cannot be iterated over.
bool check_args_iterable(PyObject* function, PyObject* args);

}  // namespace assay::capture
