/// \file Functions whose Python frames are captured, for assay.compile; used by module.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace assay::binding {

void add_captured_functions(pybind11::module_& module);

}  // namespace assay::binding
