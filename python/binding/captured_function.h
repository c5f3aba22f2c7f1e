/// \file Functions whose Python frames are captured, for assay.compile; used by module.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "assay/backend.h"

namespace assay::binding {

/// For PythonBackendOptions: why the graph that capture gives to a backend ends where it does. None
/// for graphs that capture did not make.
pybind11::object compile_subgraph_reason(const CompileRequest& request);

void add_captured_functions(pybind11::module_& module);

}  // namespace assay::binding
