/// \file Comparing results and programs from Python; used by module.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace assay::binding {

void add_compare(pybind11::module_& module);

}  // namespace assay::binding
