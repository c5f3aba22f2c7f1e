#include "kernels/interpret_math.h"

#include <ATen/native/Math.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "assay/error.h"

namespace assay::kernels {

using c10::ScalarType;

namespace {

// Calls `visit` with a value of the C++ type of `dtype`.
template <typename Visit>
auto visit_dtype(ScalarType dtype, const Visit& visit) {
  switch (dtype) {
    case ScalarType::Bool:
      return visit(bool{});
    case ScalarType::Byte:
      return visit(std::uint8_t{});
    case ScalarType::Char:
      return visit(std::int8_t{});
    case ScalarType::Short:
      return visit(std::int16_t{});
    case ScalarType::Int:
      return visit(std::int32_t{});
    case ScalarType::Long:
      return visit(std::int64_t{});
    case ScalarType::Half:
      return visit(c10::Half{});
    case ScalarType::BFloat16:
      return visit(c10::BFloat16{});
    case ScalarType::Float:
      return visit(float{});
    case ScalarType::Double:
      return visit(double{});
    default:
      throw InternalError("a dtype that kernels do not compute with");
  }
}

template <typename T>
constexpr bool is_integer = std::is_integral_v<T>;

template <typename T>
T get(Number value) {
  if constexpr (is_integer<T>) {
    return static_cast<T>(value.integer);
  } else {
    // Through float to half and bfloat16: the number is one of theirs already.
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    return static_cast<T>(static_cast<Wide>(value.floating));
  }
}

template <typename T>
Number number(T value) {
  if constexpr (is_integer<T>) {
    return {static_cast<std::int64_t>(value), 0};
  } else {
    return {0, static_cast<double>(value)};
  }
}

// As the processor converts: what does not fit gives the smallest number of the register's width.
template <typename T>
T truncate(double value) {
  using Register = std::conditional_t<(sizeof(T) < 4), std::int32_t, T>;
  // ATen goes through int64 to uint8, where negative numbers are undefined otherwise.
  using Wide = std::conditional_t<std::is_same_v<T, std::uint8_t>, std::int64_t, Register>;
  constexpr double kEnd = -2.0 * static_cast<double>(std::numeric_limits<Wide>::min() / 2);
  const bool fits = value > -kEnd - 1 && value < kEnd;
  return static_cast<T>(fits ? static_cast<Wide>(value) : std::numeric_limits<Wide>::min());
}

template <typename T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      return base == static_cast<T>(-1) ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
  }
  std::uint64_t result = 1;
  auto factor = static_cast<std::uint64_t>(base);
  for (auto left = static_cast<std::uint64_t>(exponent); left != 0; left /= 2) {
    if (left % 2 == 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

template <typename T>
T floor_division(T x, T y) {
  if constexpr (is_integer<T>) {
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(-std::uint64_t(x));
    const T quotient = static_cast<T>(x / y);
    return static_cast<T>(quotient - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0));
  } else {
    // ATen's: exact where the quotient is representable.
    if (y == 0) return x / y;
    const T modulus = std::fmod(x, y);
    T quotient = (x - modulus) / y;
    if (modulus != 0 && (y < 0) != (modulus < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(T(0), x / y);
    const T floored = std::floor(quotient);
    return quotient - floored > T(0.5) ? floored + 1 : floored;
  }
}

template <typename T>
T modulo(T x, T y) {
  if constexpr (is_integer<T>) {
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
    const T rest = static_cast<T>(x % y);
    return static_cast<T>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  } else {
    const T rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
}

template <typename T>
T float_unary(Op op, T x) {
  switch (op) {
    case Op::reciprocal:
      return T(1) / x;
    case Op::sqrt:
      return std::sqrt(x);
    case Op::rsqrt:
      return T(1) / std::sqrt(x);
    case Op::exp:
      return std::exp(x);
    case Op::exp2:
      return std::exp2(x);
    case Op::expm1:
      return std::expm1(x);
    case Op::log:
      return std::log(x);
    case Op::log2:
      return std::log2(x);
    case Op::log10:
      return std::log10(x);
    case Op::log1p:
      return std::log1p(x);
    case Op::sin:
      return std::sin(x);
    case Op::cos:
      return std::cos(x);
    case Op::tan:
      return std::tan(x);
    case Op::asin:
      return std::asin(x);
    case Op::acos:
      return std::acos(x);
    case Op::atan:
      return std::atan(x);
    case Op::sinh:
      return std::sinh(x);
    case Op::cosh:
      return std::cosh(x);
    case Op::tanh:
      return std::tanh(x);
    case Op::asinh:
      return std::asinh(x);
    case Op::acosh:
      return std::acosh(x);
    case Op::atanh:
      return std::atanh(x);
    case Op::erf:
      return std::erf(x);
    case Op::erfc:
      return std::erfc(x);
    case Op::erfinv:
      return static_cast<T>(calc_erfinv(static_cast<double>(x)));
    case Op::lgamma:
      return std::lgamma(x);
    case Op::digamma:
      return static_cast<T>(calc_digamma(x));
    case Op::sigmoid:
      return T(1) / (T(1) + std::exp(-x));
    case Op::floor:
      return std::floor(x);
    case Op::ceil:
      return std::ceil(x);
    case Op::round:
      return std::nearbyint(x);
    case Op::trunc:
      return std::trunc(x);
    case Op::frac:
      return x - std::trunc(x);
    default:
      throw InternalError(std::string(to_string(op)) + " is not an operation on one float");
  }
}

template <typename T>
T float_binary(Op op, T x, T y) {
  switch (op) {
    case Op::div:
      return x / y;
    case Op::div_trunc:
      return std::trunc(x / y);
    case Op::fmod:
      return std::fmod(x, y);
    case Op::maximum:
      return std::isnan(x) || x > y ? x : y;
    case Op::minimum:
      return std::isnan(x) || x < y ? x : y;
    case Op::fmax:
      return std::fmax(x, y);
    case Op::fmin:
      return std::fmin(x, y);
    case Op::pow:
      return std::pow(x, y);
    case Op::atan2:
      return std::atan2(x, y);
    case Op::hypot:
      return std::hypot(x, y);
    case Op::copysign:
      return std::copysign(x, y);
    case Op::nextafter:
      return std::nextafter(x, y);
    default:
      throw InternalError(std::string(to_string(op)) + " is not an operation on two floats");
  }
}

// In unsigned 64 bits, of which the low ones are right for every width.
template <typename T>
T integer_binary(Op op, T x, T y) {
  constexpr int kBits = 8 * sizeof(T);
  switch (op) {
    case Op::div_trunc:
      if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(-std::uint64_t(x));
      return static_cast<T>(x / y);
    case Op::fmod:
      if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
      return static_cast<T>(x % y);
    case Op::maximum:
    case Op::fmax:
      return x > y ? x : y;
    case Op::minimum:
    case Op::fmin:
      return x < y ? x : y;
    case Op::pow:
      return integer_power(x, y);
    case Op::bitwise_and:
      return static_cast<T>(x & y);
    case Op::bitwise_or:
      return static_cast<T>(x | y);
    case Op::bitwise_xor:
      return static_cast<T>(x ^ y);
    case Op::shift_left:
      return y < 0 || y >= kBits ? T(0) : static_cast<T>(std::uint64_t(x) << y);
    case Op::shift_right: {
      const bool is_outside = y < 0 || y >= kBits;
      return static_cast<T>(x >> (is_outside ? kBits - 1 : static_cast<int>(y)));
    }
    default:
      throw InternalError(std::string(to_string(op)) + " is not an operation on two integers");
  }
}

template <typename T>
Number unary_of(Op op, T x) {
  switch (op) {
    case Op::neg:
      if constexpr (is_integer<T>) return number(static_cast<T>(-std::uint64_t(x)));
      return number(static_cast<T>(-x));
    case Op::abs:
      if constexpr (is_integer<T>) {
        return number(x < 0 ? static_cast<T>(-std::uint64_t(x)) : x);
      } else {
        return number(std::abs(x));
      }
    case Op::sign:
      return number(static_cast<T>((x > 0) - (x < 0)));
    case Op::square:
      if constexpr (is_integer<T>) {
        return number(static_cast<T>(std::uint64_t(x) * std::uint64_t(x)));
      } else {
        return number(x * x);
      }
    default:
      break;
  }
  if constexpr (is_integer<T>) {
    if (op == Op::bitwise_not) return number(static_cast<T>(~x));
    if (op == Op::logical_not) return number(x == 0);
    throw InternalError(std::string(to_string(op)) + " is not an operation on one integer");
  } else {
    if (op == Op::isnan) return number(std::isnan(x));
    if (op == Op::isinf) return number(std::isinf(x));
    if (op == Op::isfinite) return number(std::isfinite(x));
    if (op == Op::signbit) return number(std::signbit(x));
    return number(float_unary(op, x));
  }
}

template <typename T>
Number binary_of(Op op, T x, T y) {
  switch (op) {
    case Op::eq:
      return number(x == y);
    case Op::ne:
      return number(x != y);
    case Op::lt:
      return number(x < y);
    case Op::le:
      return number(x <= y);
    case Op::gt:
      return number(x > y);
    case Op::ge:
      return number(x >= y);
    case Op::div_floor:
      return number(floor_division(x, y));
    case Op::remainder:
      return number(modulo(x, y));
    default:
      break;
  }
  if constexpr (is_integer<T>) {
    const std::uint64_t left = x;
    const std::uint64_t right = y;
    if (op == Op::add) return number(static_cast<T>(left + right));
    if (op == Op::sub) return number(static_cast<T>(left - right));
    if (op == Op::mul) return number(static_cast<T>(left * right));
    return number(integer_binary(op, x, y));
  } else {
    if (op == Op::add) return number(x + y);
    if (op == Op::sub) return number(x - y);
    if (op == Op::mul) return number(x * y);
    return number(float_binary(op, x, y));
  }
}

// Half and bfloat16 are never computed with; bools are bytes that are 0 or 1.
template <typename Visit>
Number compute_in(ScalarType dtype, const Visit& visit) {
  return visit_dtype(dtype, [&](auto zero) -> Number {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>) {
      return visit(std::uint8_t{});
    } else if constexpr (std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>) {
      throw InternalError("arithmetic on half or bfloat16");
    } else {
      return visit(zero);
    }
  });
}

}  // namespace

Number convert_number(Number value, ScalarType from, ScalarType to) {
  const bool from_integer = c10::isIntegralType(from, true);
  return visit_dtype(to, [&](auto zero) -> Number {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>) {
      return number(from_integer ? value.integer != 0 : value.floating != 0);
    } else if constexpr (is_integer<T>) {
      return number(from_integer ? static_cast<T>(value.integer) : truncate<T>(value.floating));
    } else if constexpr (std::is_same_v<T, double>) {
      return number(from_integer ? static_cast<double>(value.integer) : value.floating);
    } else {
      return number(static_cast<T>(from_integer ? static_cast<float>(value.integer)
                                                : static_cast<float>(value.floating)));
    }
  });
}

Number reinterpret_number(Number value, ScalarType from, ScalarType to) {
  std::int64_t bits = 0;
  write_number(&bits, from, 0, value);
  return read_number(&bits, to, 0);
}

Number read_number(const void* memory, ScalarType dtype, std::int64_t element) {
  return visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    return number(static_cast<const T*>(memory)[element]);
  });
}

void write_number(void* memory, ScalarType dtype, std::int64_t element, Number value) {
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T*>(memory)[element] = get<T>(value);
  });
}

Number compute_unary(Op op, ScalarType dtype, Number x) {
  return compute_in(dtype, [&](auto zero) {
    using T = decltype(zero);
    return unary_of<T>(op, get<T>(x));
  });
}

Number compute_binary(Op op, ScalarType dtype, Number x, Number y) {
  return compute_in(dtype, [&](auto zero) {
    using T = decltype(zero);
    return binary_of<T>(op, get<T>(x), get<T>(y));
  });
}

Number compute_fma(ScalarType dtype, Number x, Number y, Number z) {
  return compute_in(dtype, [&](auto zero) -> Number {
    using T = decltype(zero);
    if constexpr (is_integer<T>) {
      throw InternalError("fma of integers");
    } else {
      return number(std::fma(get<T>(x), get<T>(y), get<T>(z)));
    }
  });
}

}  // namespace assay::kernels
