/// \file Tracing and compiling from Python; used by module.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace assay::binding {

void add_aot(pybind11::module_& module);

}  // namespace assay::binding
