/// \file Python's infix operators on any values: tensors, numbers, sequences. Who answers follows
/// Python's rules: the left operand's method, then the right operand's reflected one.
#pragma once

#include <string_view>

#include "aten/functions/python_numbers.h"

namespace assay::aten {

/// `left <operation> right`. `symbol` is how the user wrote it, for messages. With `in_place` a
/// tensor on the left is changed, as by `+=`.
Value apply_operator(BinaryOperation operation, std::string_view symbol, const Value& left,
                     const Value& right, bool in_place = false);

/// `self.__radd__(other)` and so on: as a rule `other <operation> self`, but a tensor has its own
/// way for some (`1 / x` is `x.reciprocal() * 1`).
Value apply_reflected(BinaryOperation operation, std::string_view symbol, const Value& self,
                      const Value& other);

/// `left <comparison> right`: a bool, or a tensor of them.
Value apply_comparison(Comparison comparison, const Value& left, const Value& right);

/// `left is right`, where that can be known.
bool is_same_object(const Value& left, const Value& right);

}  // namespace assay::aten
