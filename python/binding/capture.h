/// \file The capture of Python frames for Python; used by module.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace assay::binding {

void add_capture(pybind11::module_& module);

}  // namespace assay::binding
