/// \file What functions and other callables say of themselves: their names, marks that somebody has
/// put on them, and whether functools.lru_cache keeps their results. Used by the recorder.
#pragma once

#include <Python.h>

#include <optional>
#include <string>

#include "capture/ref.h"

namespace assay::capture {

/// For messages: its module and qualified name in quotes.
std::string name_of(PyObject* callable);
/// Why a function that is marked to be run eagerly is; nothing for other functions.
std::optional<std::string> disabled_reason(PyObject* function);
/// A function of torch.optim that stock's compiler, once it is used, has marked to be run eagerly,
/// for itself; or null. Borrowed.
PyObject* wrapped_by_stock(PyObject* function);
/// Whether a function carries a mark of ours.
bool is_marked(PyObject* function, PyObject* mark);
/// By where it was written: functools.wraps gives a wrapper the name and module of what it wraps.
bool is_of_stocks_compiler(PyFunctionObject* function);
/// The Python function that a torch.jit.script function was made from, which runs the same
/// operators; or null. Borrowed.
PyObject* scripted_function(PyObject* callable);
/// functools.lru_cache keeps its results.
bool is_cached(PyObject* callable);
/// The same, and it is one of a library.
bool is_cached_by_library(PyObject* callable);

}  // namespace assay::capture
