/// \file Python objects <-> aten::Value, for the binding.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <vector>

#include "aten/value.h"

namespace assay::binding {

/// Throws `UserError` (raised as assay.UserError) for an object a graph cannot hold.
aten::Value from_python(pybind11::handle object);

/// One value per object.
std::vector<aten::Value> values_from(const pybind11::iterable& objects);

pybind11::object to_python(const aten::Value& value);

}  // namespace assay::binding
