/// \file What the recorder asks of what a program calls: its name for a message, and whether
/// functools.lru_cache keeps its results (record_calls.cpp, record_cached_calls.cpp).
#pragma once

#include <Python.h>

#include <string>

namespace assay::capture {

std::string name_of(PyObject* callable);
bool is_cached(PyObject* callable);
/// One of a library.
bool is_cached_by_library(PyObject* callable);

}  // namespace assay::capture
