/// \file Python's arithmetic on plain numbers (sizes, scalars): `7 // -2` is -4, `1 / 2` is 0.5.
///
/// Python's integers have no end; ours have 64 bits. A result that does not fit is a `UserError`,
/// never a wrapped number.
#pragma once

#include <cstdint>

#include "aten/value.h"

namespace assay::aten {

enum class BinaryOperation {
  add,
  subtract,
  multiply,
  true_divide,
  floor_divide,
  modulo,
  power,
  matrix_multiply,
  left_shift,
  right_shift,
  bit_and,
  bit_or,
  bit_xor,
};

enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal };

/// `left <operation> right` for two numbers.
Value calculate(BinaryOperation operation, const Value& left, const Value& right);
bool compare_numbers(Comparison comparison, const Value& left, const Value& right);

Value negate_number(const Value& value);
Value absolute_number(const Value& value);
/// `+value`: what it is, but a bool becomes an int.
Value positive_number(const Value& value);
/// `~value`.
Value invert_number(const Value& value);

/// Products and sums of sizes that come from a file; `UserError` if they do not fit 64 bits.
std::int64_t multiply_sizes(std::int64_t left, std::int64_t right);
std::int64_t add_sizes(std::int64_t left, std::int64_t right);
std::int64_t product_of_sizes(at::IntArrayRef sizes);

/// `int(value)`: towards zero.
std::int64_t number_to_integer(const Value& value);
/// `float(value)`.
double number_to_float(const Value& value);
/// A float that must be a whole number in range, as `math.floor` returns it.
std::int64_t float_to_integer(double value);
/// Python's `round(value, digits)`; `digits` may be None.
Value round_number(const Value& value, const Value& digits);

}  // namespace assay::aten
