#include "aten/functions/python_numbers.h"

#include <cfenv>
#include <cmath>
#include <complex>
#include <limits>

#include "assay/error.h"

namespace assay::aten {

namespace {

using Complex = c10::complex<double>;

enum class Rank { integer, floating, complex };

// Integers up to here are exact as doubles.
constexpr std::int64_t kExactDouble = std::int64_t{1} << 53;

Rank rank(const Value& value) {
  if (value.leaf.isComplexDouble()) return Rank::complex;
  if (value.leaf.isDouble()) return Rank::floating;
  if (value.is_int() || value.is_bool()) return Rank::integer;
  throw UserError("expected a number, found " + type_name(value));
}

std::int64_t as_integer(const Value& value) {
  return value.is_bool() ? std::int64_t{value.leaf.toBool()} : value.leaf.toInt();
}

double as_float(const Value& value) {
  if (value.leaf.isDouble()) return value.leaf.toDouble();
  return static_cast<double>(as_integer(value));
}

Complex as_complex(const Value& value) {
  if (value.leaf.isComplexDouble()) return value.leaf.toComplexDouble();
  return {as_float(value), 0.0};
}

UserError too_large() {
  return UserError("the result of an integer operation does not fit in 64 bits",
                   "integers are unbounded in Python, but not in a graph");
}

NeedsPythonError unsupported(const char* what) {
  return NeedsPythonError(std::string(what) + " needs a Python process");
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) throw too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) throw too_large();
  }
  return result;
}

std::int64_t shift_left(std::int64_t left, std::int64_t right) {
  if (right < 0) throw UserError("negative shift count");
  if (left == 0) return 0;
  if (left == -1 && right == 63) return std::numeric_limits<std::int64_t>::min();
  std::int64_t result = 0;
  if (right >= 63 || __builtin_mul_overflow(left, std::int64_t{1} << right, &result)) {
    throw too_large();
  }
  return result;
}

std::int64_t shift_right(std::int64_t left, std::int64_t right) {
  if (right < 0) throw UserError("negative shift count");
  return right > 63 ? (left < 0 ? -1 : 0) : left >> right;
}

struct Division {
  std::int64_t quotient;
  std::int64_t remainder;
};

// Rounds towards minus infinity; the remainder has the divisor's sign.
Division divide_integers(std::int64_t left, std::int64_t right) {
  if (right == 0) throw UserError("integer division or modulo by zero");
  if (right == -1) {
    if (left == std::numeric_limits<std::int64_t>::min()) throw too_large();
    return {-left, 0};
  }
  Division result{left / right, left % right};
  if (result.remainder != 0 && (result.remainder < 0) != (right < 0)) {
    result.quotient -= 1;
    result.remainder += right;
  }
  return result;
}

double divide_exactly(std::int64_t left, std::int64_t right) {
  if (right == 0) throw UserError("division by zero");
  const auto is_exact = [](std::int64_t number) {
    return number >= -kExactDouble && number <= kExactDouble;
  };
  // Python rounds the exact quotient once; converting larger numbers first would round twice.
  if (!is_exact(left) || !is_exact(right)) throw unsupported("division of integers beyond 2**53");
  return static_cast<double>(left) / static_cast<double>(right);
}

Value calculate_integers(BinaryOperation operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (operation) {
    case BinaryOperation::add:
      if (__builtin_add_overflow(left, right, &result)) throw too_large();
      return c10::IValue(result);
    case BinaryOperation::subtract:
      if (__builtin_sub_overflow(left, right, &result)) throw too_large();
      return c10::IValue(result);
    case BinaryOperation::multiply:
      if (__builtin_mul_overflow(left, right, &result)) throw too_large();
      return c10::IValue(result);
    case BinaryOperation::true_divide:
      return c10::IValue(divide_exactly(left, right));
    case BinaryOperation::floor_divide:
      return c10::IValue(divide_integers(left, right).quotient);
    case BinaryOperation::modulo:
      return c10::IValue(divide_integers(left, right).remainder);
    case BinaryOperation::left_shift:
      return c10::IValue(shift_left(left, right));
    case BinaryOperation::right_shift:
      return c10::IValue(shift_right(left, right));
    case BinaryOperation::bit_and:
      return c10::IValue(left & right);
    case BinaryOperation::bit_or:
      return c10::IValue(left | right);
    case BinaryOperation::bit_xor:
      return c10::IValue(left ^ right);
    case BinaryOperation::power:
      return c10::IValue(integer_power(left, right));
    case BinaryOperation::matrix_multiply:
      break;
  }
  throw UserError("unsupported operand types for a matrix product: int and int");
}

// Python's remainder has the divisor's sign, and its floor quotient is taken from it.
double float_modulo(double left, double right) {
  if (right == 0) throw UserError("float modulo by zero");
  double result = std::fmod(left, right);
  if (result != 0) {
    if ((right < 0) != (result < 0)) result += right;
  } else {
    result = std::copysign(0.0, right);
  }
  return result;
}

double float_floor_divide(double left, double right) {
  if (right == 0) throw UserError("float floor division by zero");
  const double remainder = std::fmod(left, right);
  double quotient = (left - remainder) / right;
  if (remainder != 0 && (right < 0) != (remainder < 0)) quotient -= 1.0;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1.0 : floored;
}

double float_power(double left, double right) {
  if (left == 0 && right < 0 && std::isfinite(right))
    throw UserError("0.0 cannot be raised to a negative power");
  if (left < 0 && std::isfinite(left) && std::isfinite(right) && right != std::floor(right)) {
    throw unsupported("a fractional power of a negative number");
  }
  const double result = std::pow(left, right);
  if (std::isinf(result) && std::isfinite(left) && std::isfinite(right)) {
    throw UserError("numerical result out of range");
  }
  return result;
}

Value calculate_floats(BinaryOperation operation, double left, double right) {
  switch (operation) {
    case BinaryOperation::add:
      return c10::IValue(left + right);
    case BinaryOperation::subtract:
      return c10::IValue(left - right);
    case BinaryOperation::multiply:
      return c10::IValue(left * right);
    case BinaryOperation::true_divide:
      if (right == 0) throw UserError("float division by zero");
      return c10::IValue(left / right);
    case BinaryOperation::floor_divide:
      return c10::IValue(float_floor_divide(left, right));
    case BinaryOperation::modulo:
      return c10::IValue(float_modulo(left, right));
    case BinaryOperation::power:
      return c10::IValue(float_power(left, right));
    default:
      throw UserError("unsupported operand types for a bitwise operation: float");
  }
}

Value calculate_complex(BinaryOperation operation, Complex left, Complex right) {
  switch (operation) {
    case BinaryOperation::add:
      return c10::IValue(left + right);
    case BinaryOperation::subtract:
      return c10::IValue(left - right);
    case BinaryOperation::multiply:
      return c10::IValue(Complex(left.real() * right.real() - left.imag() * right.imag(),
                                 left.real() * right.imag() + left.imag() * right.real()));
    default:
      throw unsupported("this operation on complex numbers");
  }
}

template <typename T>
bool compare_ordered(Comparison comparison, T left, T right) {
  switch (comparison) {
    case Comparison::equal:
      return left == right;
    case Comparison::not_equal:
      return left != right;
    case Comparison::less:
      return left < right;
    case Comparison::less_equal:
      return left <= right;
    case Comparison::greater:
      return left > right;
    case Comparison::greater_equal:
      return left >= right;
  }
  throw InternalError("an unknown comparison");
}

bool is_bit_operation(BinaryOperation operation) {
  return operation == BinaryOperation::bit_and || operation == BinaryOperation::bit_or ||
         operation == BinaryOperation::bit_xor;
}

}  // namespace

Value calculate(BinaryOperation operation, const Value& left, const Value& right) {
  const Rank highest = std::max(rank(left), rank(right));
  if (highest == Rank::complex) {
    return calculate_complex(operation, as_complex(left), as_complex(right));
  }
  if (highest == Rank::floating) {
    return calculate_floats(operation, as_float(left), as_float(right));
  }
  const std::int64_t left_integer = as_integer(left);
  const std::int64_t right_integer = as_integer(right);
  if (operation == BinaryOperation::power && right_integer < 0) {
    return calculate_floats(operation, as_float(left), as_float(right));
  }
  Value result = calculate_integers(operation, left_integer, right_integer);
  if (is_bit_operation(operation) && left.is_bool() && right.is_bool()) {
    return c10::IValue(result.leaf.toInt() != 0);
  }
  return result;
}

bool compare_numbers(Comparison comparison, const Value& left, const Value& right) {
  const Rank highest = std::max(rank(left), rank(right));
  if (highest == Rank::integer) {
    return compare_ordered(comparison, as_integer(left), as_integer(right));
  }
  if (highest == Rank::complex) {
    if (comparison != Comparison::equal && comparison != Comparison::not_equal) {
      throw UserError("complex numbers cannot be ordered");
    }
    return (as_complex(left) == as_complex(right)) == (comparison == Comparison::equal);
  }
  // Python compares an int with a float exactly; a long double holds both without rounding.
  static_assert(std::numeric_limits<long double>::digits >= 64);
  const auto exact = [](const Value& value) {
    return value.is_float() ? static_cast<long double>(value.leaf.toDouble())
                            : static_cast<long double>(as_integer(value));
  };
  return compare_ordered(comparison, exact(left), exact(right));
}

std::int64_t multiply_sizes(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(left, right, &result)) throw too_large();
  return result;
}

std::int64_t add_sizes(std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(left, right, &result)) throw too_large();
  return result;
}

std::int64_t product_of_sizes(at::IntArrayRef sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result = multiply_sizes(result, size);
  return result;
}

Value negate_number(const Value& value) {
  switch (rank(value)) {
    case Rank::complex:
      return c10::IValue(-as_complex(value));
    case Rank::floating:
      return c10::IValue(-as_float(value));
    case Rank::integer:
      break;
  }
  const std::int64_t integer = as_integer(value);
  if (integer == std::numeric_limits<std::int64_t>::min()) throw too_large();
  return c10::IValue(-integer);
}

Value absolute_number(const Value& value) {
  switch (rank(value)) {
    case Rank::complex:
      return c10::IValue(std::hypot(as_complex(value).real(), as_complex(value).imag()));
    case Rank::floating:
      return c10::IValue(std::fabs(as_float(value)));
    case Rank::integer:
      break;
  }
  return as_integer(value) < 0 ? negate_number(value) : positive_number(value);
}

Value positive_number(const Value& value) {
  return rank(value) == Rank::integer ? Value(c10::IValue(as_integer(value))) : value;
}

Value invert_number(const Value& value) {
  if (rank(value) != Rank::integer) throw UserError("bad operand type for ~: " + type_name(value));
  return c10::IValue(~as_integer(value));
}

std::int64_t float_to_integer(double value) {
  if (std::isnan(value)) throw UserError("cannot convert float NaN to integer");
  if (std::isinf(value)) throw UserError("cannot convert float infinity to integer");
  // The double nearest to the largest int64 is one too large.
  if (value < -0x1p63 || value >= 0x1p63) throw too_large();
  return static_cast<std::int64_t>(value);
}

std::int64_t number_to_integer(const Value& value) {
  switch (rank(value)) {
    case Rank::integer:
      return as_integer(value);
    case Rank::floating:
      return float_to_integer(as_float(value));
    case Rank::complex:
      break;
  }
  throw UserError("can't convert complex to int");
}

double number_to_float(const Value& value) {
  if (rank(value) == Rank::complex) throw UserError("can't convert complex to float");
  return as_float(value);
}

Value round_number(const Value& value, const Value& digits) {
  if (!digits.is_none()) {
    if (rank(value) == Rank::integer && digits.is_int() && digits.leaf.toInt() >= 0) {
      return positive_number(value);
    }
    // Python rounds the decimal text of the number; a scaled binary rounding can differ.
    throw unsupported("rounding to a number of digits");
  }
  if (rank(value) == Rank::integer) return positive_number(value);
  // To the nearest, ties to even: the default rounding mode.
  return c10::IValue(float_to_integer(std::nearbyint(number_to_float(value))));
}

}  // namespace assay::aten
