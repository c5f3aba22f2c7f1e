/// \file Python objects <-> aten::Value, for the binding.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "aten/value.h"

namespace assay::binding {

/// Throws `UserError` (raised as assay.UserError) for an object a graph cannot hold.
aten::Value from_python(pybind11::handle object);

pybind11::object to_python(const aten::Value& value);

}  // namespace assay::binding
