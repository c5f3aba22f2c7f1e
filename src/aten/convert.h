/// \file Converts Python values to what an operator's schema asks for, as PyTorch's own argument
/// parser does.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <optional>

#include "aten/value.h"

namespace assay::aten {

/// The IValue for the argument at `position` of a schema, or nothing if the value does not fit.
/// `cost` grows with how far the value is from what was asked for (0 for an exact fit), to choose
/// between overloads.
std::optional<c10::IValue> convert(const Value& value, const c10::FunctionSchema& schema,
                                   std::size_t position, int& cost);

/// True for `Tensor` and `Tensor?`.
bool wants_tensor(const c10::Type& type);

}  // namespace assay::aten
