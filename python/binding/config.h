/// \file The settings for Python, which `assay.config` is made of; used by module.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace assay::binding {

void add_config(pybind11::module_& module);

}  // namespace assay::binding
