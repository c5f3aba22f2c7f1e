/// \file Python's infix operators on any values: tensors, numbers, sequences.
#pragma once

#include "aten/functions/python_numbers.h"

namespace assay::aten {

/// `left <operation> right`. `symbol` is how the user wrote it, for messages. With `in_place` a
/// tensor on the left is changed, as by `+=`.
Value apply_operator(BinaryOperation operation, std::string_view symbol, const Value& left,
                     const Value& right, bool in_place = false);

/// `left <comparison> right`: a bool, or a tensor of them.
Value apply_comparison(Comparison comparison, const Value& left, const Value& right);

}  // namespace assay::aten
