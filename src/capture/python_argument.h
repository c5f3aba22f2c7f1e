/// \file Python values as arguments of a graph's node: numbers, strings, dtypes, devices, ...
#pragma once

#include <Python.h>

#include "graph/argument.h"

namespace assay::capture {

/// False if it is not a plain value: a tensor, a container, or something a graph cannot hold.
bool plain_argument(PyObject* object, graph::Argument& argument);

}  // namespace assay::capture
