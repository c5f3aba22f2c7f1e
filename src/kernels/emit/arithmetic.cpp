#include "kernels/emit/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "assay/error.h"
#include "kernels/emit/math.h"
#include "kernels/emit/vectors.h"

namespace assay::kernels {

namespace {

std::string float_literal(double value, bool is_single) {
  const char* suffix = is_single ? "f" : "";
  if (std::isnan(value)) return std::string("__builtin_nan") + suffix + "(\"\")";
  if (std::isinf(value)) {
    return std::string(value < 0 ? "-" : "") + "__builtin_inf" + suffix + "()";
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", is_single ? 9 : 17, value);
  // The shortest text that reads back as the same number.
  for (int digits = 1; digits < (is_single ? 9 : 17); ++digits) {
    char shorter[40];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    const bool same = is_single ? std::strtof(shorter, nullptr) == static_cast<float>(value)
                                : std::strtod(shorter, nullptr) == value;
    if (same) {
      std::snprintf(text, sizeof text, "%s", shorter);
      break;
    }
  }
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result + suffix;
}

std::string integer_literal(std::int64_t value, std::string_view element) {
  if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807L - 1)";
  if (value == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
  return std::to_string(value) + (element == "i64" ? "L" : "");
}

std::string number(double value, std::string_view element) {
  if (is_float(element)) return float_literal(value, element == "f32");
  return integer_literal(static_cast<std::int64_t>(value), element);
}

struct IntegerFunction {
  Op op;
  std::string_view text;
};

// On scalars $e; vectors apply them lane by lane. A divisor of 0 was excluded by a check, but may
// stand in lanes that are not used; the smallest number divided by -1 wraps around.
constexpr auto kIntegerFunctions = std::to_array<IntegerFunction>({
    {Op::div_trunc, "  return b == 0 ? ($e)0 : b == ($e)-1 ? ($e)-a : ($e)(a / b);\n"},
    {Op::fmod, "  return b == 0 || b == ($e)-1 ? ($e)0 : ($e)(a % b);\n"},
    {Op::div_floor,
     "  if (b == 0 || b == ($e)-1) return b == 0 ? ($e)0 : ($e)-a;\n"
     "  $e quotient = a / b;\n"
     "  return a % b != 0 && (a < 0) != (b < 0) ? ($e)(quotient - 1) : quotient;\n"},
    {Op::remainder,
     "  if (b == 0 || b == ($e)-1) return 0;\n"
     "  $e rest = a % b;\n"
     "  return rest != 0 && (rest < 0) != (b < 0) ? ($e)(rest + b) : rest;\n"},
    {Op::pow,
     "  if (b < 0) return a == 1 ? 1 : a == ($e)-1 ? (b % 2 == 0 ? 1 : -1) : 0;\n"
     "  $e result = 1;\n"
     "  for (; b != 0; b /= 2) {\n"
     "    if (b % 2 != 0) result *= a;\n"
     "    a *= a;\n"
     "  }\n"
     "  return result;\n"},
    {Op::shift_left, "  return b < 0 || b >= $bits ? ($e)0 : ($e)(a << b);\n"},
    {Op::shift_right, "  return b < 0 || b > $last ? ($e)(a >> $last) : ($e)(a >> b);\n"},
});

// For u8, -1 is not special, and nothing is negative.
constexpr auto kUnsignedFunctions = std::to_array<IntegerFunction>({
    {Op::div_trunc, "  return b == 0 ? ($e)0 : ($e)(a / b);\n"},
    {Op::div_floor, "  return b == 0 ? ($e)0 : ($e)(a / b);\n"},
    {Op::fmod, "  return b == 0 ? ($e)0 : ($e)(a % b);\n"},
    {Op::remainder, "  return b == 0 ? ($e)0 : ($e)(a % b);\n"},
    {Op::shift_left, "  return b >= $bits ? ($e)0 : ($e)(a << b);\n"},
    {Op::shift_right, "  return b >= $bits ? ($e)0 : ($e)(a >> b);\n"},
});

std::string integer_function(Prelude& prelude, Op op, std::string_view element, int lanes) {
  std::string name = std::string(to_string(op)) + "_" + prelude.type(element, lanes);
  if (!prelude.is_new(name)) return name;
  if (lanes > 1) {
    const std::string scalar = integer_function(prelude, op, element, 1);
    prelude.add(
        fill_in("inline_ $V $N($V a, $V b) {\n"
                "  $V v;\n"
                "  for (int k = 0; k < $n; ++k) v[k] = $f(a[k], b[k]);\n"
                "  return v;\n"
                "}\n",
                {{"V", prelude.type(element, lanes)},
                 {"N", name},
                 {"n", std::to_string(lanes)},
                 {"f", scalar}}));
    return name;
  }
  const int bits = 8 * byte_width(element);
  auto define = [&](const IntegerFunction& entry) {
    prelude.add(
        fill_in("inline_ $e $N($e a, $e b) {\n", {{"e", std::string(element)}, {"N", name}}) +
        fill_in(entry.text, {{"e", std::string(element)},
                             {"bits", std::to_string(bits)},
                             {"last", std::to_string(bits - 1)}}) +
        "}\n");
  };
  if (element[0] == 'u') {
    for (const IntegerFunction& entry : kUnsignedFunctions) {
      if (entry.op == op) return define(entry), name;
    }
  }
  for (const IntegerFunction& entry : kIntegerFunctions) {
    if (entry.op == op) return define(entry), name;
  }
  throw InternalError(std::string("integers have no ") + to_string(op));
}

// The same with one second operand for all lanes: if that is a constant, the compiler divides by
// multiplying.
std::string integer_function_by_scalar(Prelude& prelude, Op op, std::string_view element,
                                       int lanes) {
  const std::string vector = prelude.type(element, lanes);
  std::string name = std::string(to_string(op)) + "_by_" + vector;
  if (prelude.is_new(name)) {
    prelude.add(
        fill_in("inline_ $V $N($V a, $e b) {\n"
                "  $V v;\n"
                "  for (int k = 0; k < $n; ++k) v[k] = $f(a[k], b);\n"
                "  return v;\n"
                "}\n",
                {{"V", vector},
                 {"N", name},
                 {"e", std::string(element)},
                 {"n", std::to_string(lanes)},
                 {"f", integer_function(prelude, op, element, 1)}}));
  }
  return name;
}

// Floor division and remainder of floats, as ATen computes them.
std::string float_division(Prelude& prelude, Op op, std::string_view element, int lanes) {
  const std::string type = prelude.type(element, lanes);
  std::string name = std::string(to_string(op)) + "_" + type;
  if (!prelude.is_new(name)) return name;
  const std::string integer = prelude.type(integer_of(element), lanes);
  const bool is_single = element == "f32";
  const std::string fmod = float_function(prelude, Op::fmod, element, lanes);
  std::string floor;
  if (op == Op::div_floor) floor = float_function(prelude, Op::floor, element, lanes);
  constexpr std::string_view kRemainder =
      "inline_ $F $N($F a, $F b) {\n"
      "  $F rest = $fmod(a, b);\n"
      "  return (rest != $0) & ((rest < $0) != (b < $0)) ? rest + b : rest;\n"
      "}\n";
  constexpr std::string_view kFloor =
      "inline_ $F $N($F a, $F b) {\n"
      "  $F exact = a / b;\n"
      "  $F rest = $fmod(a, b);\n"
      "  $F quotient = (a - rest) / b;\n"
      "  quotient = (rest != $0) & ((rest < $0) != (b < $0)) ? quotient - $1 : quotient;\n"
      "  $F whole = $floor(quotient);\n"
      "  whole = quotient - whole > $half ? whole + $1 : whole;\n"
      "  $I sign = __builtin_bit_cast($I, exact) & $sign;\n"
      "  whole = quotient != $0 ? whole : __builtin_bit_cast($F, sign);\n"
      "  return b != $0 ? whole : exact;\n"
      "}\n";
  prelude.add(fill_in(op == Op::remainder ? kRemainder : kFloor,
                      {{"F", type},
                       {"N", name},
                       {"I", integer},
                       {"fmod", fmod},
                       {"floor", floor},
                       {"0", float_literal(0, is_single)},
                       {"1", float_literal(1, is_single)},
                       {"half", float_literal(0.5, is_single)},
                       {"sign", is_single ? "(-2147483647 - 1)" : "(-9223372036854775807L - 1)"}}));
  return name;
}

// An expression of an integer smaller than int is an int.
std::string narrowed(std::string_view element, int lanes, const std::string& expression) {
  if (lanes > 1 || is_float(element) || byte_width(element) >= 4) return expression;
  return "(" + std::string(element) + ")(" + expression + ")";
}

const char* infix(Op op) {
  switch (op) {
    case Op::add:
      return " + ";
    case Op::sub:
      return " - ";
    case Op::mul:
      return " * ";
    case Op::div:
      return " / ";
    case Op::bitwise_and:
      return " & ";
    case Op::bitwise_or:
      return " | ";
    case Op::bitwise_xor:
      return " ^ ";
    case Op::eq:
      return " == ";
    case Op::ne:
      return " != ";
    case Op::lt:
      return " < ";
    case Op::le:
      return " <= ";
    case Op::gt:
      return " > ";
    case Op::ge:
      return " >= ";
    default:
      return nullptr;
  }
}

}  // namespace

bool is_comparison(Op op) {
  switch (op) {
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
    case Op::isnan:
    case Op::isinf:
    case Op::isfinite:
    case Op::signbit:
    case Op::logical_not:
      return true;
    default:
      return false;
  }
}

std::string literal(const c10::Scalar& value, c10::ScalarType dtype) {
  using c10::ScalarType;
  switch (dtype) {
    case ScalarType::Bool:
      return value.toBool() ? "true" : "false";
    case ScalarType::Float:
      return float_literal(value.toFloat(), true);
    case ScalarType::Double:
      return float_literal(value.toDouble(), false);
    case ScalarType::Half:
      return std::to_string(value.toHalf().x);
    case ScalarType::BFloat16:
      return std::to_string(value.toBFloat16().x);
    default:
      return integer_literal(
          value.isFloatingPoint() ? static_cast<std::int64_t>(value.toDouble()) : value.toLong(),
          element_name(dtype));
  }
}

std::string reduction_start(Op op, std::string_view element) {
  switch (op) {
    case Op::reduce_prod:
    case Op::scan_prod:
      return number(1, element);
    case Op::reduce_max:
    case Op::scan_max:
    case Op::reduce_argmax:
      if (is_float(element)) return number(-HUGE_VAL, element);
      if (element[0] == 'u') return "0";
      return integer_literal(
          std::numeric_limits<std::int64_t>::min() >> (64 - 8 * byte_width(element)), element);
    case Op::reduce_min:
    case Op::scan_min:
    case Op::reduce_argmin:
      if (is_float(element)) return number(HUGE_VAL, element);
      if (element[0] == 'u') return std::to_string((1 << (8 * byte_width(element))) - 1);
      return integer_literal(
          std::numeric_limits<std::int64_t>::max() >> (64 - 8 * byte_width(element)), element);
    default:
      return number(0, element);
  }
}

Op reduction_step(Op op) {
  switch (op) {
    case Op::reduce_sum:
    case Op::scan_sum:
      return Op::add;
    case Op::reduce_prod:
    case Op::scan_prod:
      return Op::mul;
    case Op::reduce_max:
    case Op::scan_max:
      return Op::maximum;
    case Op::reduce_min:
    case Op::scan_min:
      return Op::minimum;
    case Op::reduce_any:
      return Op::bitwise_or;
    case Op::reduce_all:
      return Op::bitwise_and;
    case Op::reduce_xor:
      return Op::bitwise_xor;
    default:
      throw InternalError(std::string(to_string(op)) + " has no simple step");
  }
}

std::string logic(Op op, int lanes, std::span<const std::string> operands) {
  const std::string invert = lanes == 1 ? "!" : "~";
  const std::string& a = operands[0];
  switch (op) {
    case Op::logical_not:
    case Op::bitwise_not:
    case Op::neg:
      return invert + a;
    case Op::add:
    case Op::maximum:
    case Op::fmax:
    case Op::bitwise_or:
      return a + " | " + operands[1];
    case Op::mul:
    case Op::minimum:
    case Op::fmin:
    case Op::bitwise_and:
      return a + " & " + operands[1];
    case Op::sub:
    case Op::bitwise_xor:
    case Op::ne:
      return a + " ^ " + operands[1];
    case Op::eq:
      return invert + "(" + a + " ^ " + operands[1] + ")";
    case Op::lt:
      return invert + a + " & " + operands[1];
    case Op::le:
      return invert + a + " | " + operands[1];
    case Op::gt:
      return a + " & " + invert + operands[1];
    case Op::ge:
      return a + " | " + invert + operands[1];
    case Op::where:
      return "(" + a + " & " + operands[1] + ") | (" + invert + a + " & " + operands[2] + ")";
    case Op::abs:
    case Op::square:
    case Op::sign:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
      return a;
    default:
      throw InternalError(std::string("bools have no ") + to_string(op));
  }
}

std::string arithmetic(Prelude& prelude, Op op, std::string_view element, int lanes,
                       std::span<const std::string> operands) {
  const bool is_floating = is_float(element);
  const std::string& a = operands[0];
  auto call = [&](const std::string& function) {
    std::string text = function + "(" + a;
    for (const std::string& operand : operands.subspan(1)) text += ", " + operand;
    return text + ")";
  };
  auto constant = [&](double value) {
    return splat(prelude, element, lanes, number(value, element));
  };
  if (const char* text = infix(op)) {
    const std::string expression = a + text + operands[1];
    return is_comparison(op) ? expression : narrowed(element, lanes, expression);
  }
  const std::string integer = integer_of(element);
  switch (op) {
    case Op::neg:
      return narrowed(element, lanes, "-" + a);
    case Op::bitwise_not:
      return narrowed(element, lanes, "~" + a);
    case Op::abs:
      if (element[0] == 'u') return a;
      if (!is_floating)
        return narrowed(element, lanes, a + " < " + constant(0) + " ? -" + a + " : " + a);
      return reinterpret(prelude,
                         reinterpret(prelude, a, integer, lanes) +
                             (element == "f32" ? " & 0x7fffffff" : " & 0x7fffffffffffffffL"),
                         element, lanes);
    case Op::sign:
      return narrowed(element, lanes,
                      a + " > " + constant(0) + " ? " + constant(1) + " : (" + a + " < " +
                          constant(0) + " ? " + (element[0] == 'u' ? constant(0) : constant(-1)) +
                          " : " + constant(0) + ")");
    case Op::reciprocal:
      return number(1, element) + " / " + a;
    case Op::sqrt:
      // The NaN of a negative number is positive, as in ATen; the processor's is negative.
      return a + " < " + number(0, element) + " ? " + constant(std::nan("")) + " : " +
             call(float_function(prelude, op, element, lanes));
    case Op::rsqrt:
      return number(1, element) + " / " + float_function(prelude, Op::sqrt, element, lanes) + "(" +
             a + ")";
    case Op::square:
      return narrowed(element, lanes, a + " * " + a);
    case Op::frac:
      return a + " - " + float_function(prelude, Op::trunc, element, lanes) + "(" + a + ")";
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
      return is_floating ? call(float_function(prelude, op, element, lanes)) : a;
    case Op::isnan:
      return a + " != " + a;
    case Op::isinf:
      if (!is_floating) return a + " != " + a;
      return "(" + a + " == " + number(HUGE_VAL, element) + ") | (" + a +
             " == " + number(-HUGE_VAL, element) + ")";
    case Op::isfinite:
      if (!is_floating) return a + " == " + a;
      return a + " - " + a + " == " + number(0, element);
    case Op::signbit:
      return (is_floating ? reinterpret(prelude, a, integer, lanes) : a) + " < " +
             prelude.type(integer, lanes) + "{}";
    case Op::logical_not:
      return a + " == " + number(0, element);
    case Op::div_floor:
    case Op::remainder:
      return call(is_floating ? float_division(prelude, op, element, lanes)
                              : integer_function(prelude, op, element, lanes));
    case Op::div_trunc:
      if (!is_floating) return call(integer_function(prelude, op, element, lanes));
      return float_function(prelude, Op::trunc, element, lanes) + "(" + a + " / " + operands[1] +
             ")";
    case Op::maximum:
    case Op::fmax:
    case Op::minimum:
    case Op::fmin: {
      const std::string& b = operands[1];
      const bool is_max = op == Op::maximum || op == Op::fmax;
      std::string better = a + (is_max ? " > " : " < ") + b;
      if (is_floating) {
        const std::string& nan = op == Op::maximum || op == Op::minimum ? a : b;
        better = "(" + better + ") | (" + nan + " != " + nan + ")";
      }
      return better + " ? " + a + " : " + b;
    }
    case Op::copysign: {
      const std::string sign = element == "f32" ? "(i32)0x80000000" : "(i64)0x8000000000000000";
      return reinterpret(prelude,
                         "(" + reinterpret(prelude, a, integer, lanes) + " & ~" + sign + ") | (" +
                             reinterpret(prelude, operands[1], integer, lanes) + " & " + sign + ")",
                         element, lanes);
    }
    case Op::shift_left:
    case Op::shift_right:
      return call(integer_function(prelude, op, element, lanes));
    case Op::pow:
    case Op::fmod:
      if (!is_floating) return call(integer_function(prelude, op, element, lanes));
      break;
    case Op::where:
      return a + " ? " + operands[1] + " : " + operands[2];
    default:
      break;
  }
  internal_check(is_floating, "an operation of floats is used on integers");
  return call(float_function(prelude, op, element, lanes));
}

bool is_integer_function(Op op) {
  return std::ranges::find(kIntegerFunctions, op, &IntegerFunction::op) != kIntegerFunctions.end();
}

std::string arithmetic_by_scalar(Prelude& prelude, Op op, std::string_view element, int lanes,
                                 const std::string& vector, const std::string& scalar) {
  return integer_function_by_scalar(prelude, op, element, lanes) + "(" + vector + ", " + scalar +
         ")";
}

}  // namespace assay::kernels
