/// \file Do results lie in memory as eager's do: the same strides, the same memory shared with
/// inputs and with one another? What `same_two_models` asks of programs whose numbers are the same.
#pragma once

#include "aten/value.h"
#include "compare/same.h"

namespace assay::compare {

/// Compares strides where eager's are a promise: of tensors whose elements fill their memory
/// without overlap, in dimensions of more than one element.
Comparison same_strides(const aten::Value& reference, const aten::Value& result);

/// What one program returned, and the inputs that it was given.
struct Memory {
  const aten::Value& output;
  const aten::Value& inputs;
};

/// Compares which results share a storage with which inputs, and with which other results.
Comparison same_aliasing(const Memory& reference, const Memory& result);

}  // namespace assay::compare
