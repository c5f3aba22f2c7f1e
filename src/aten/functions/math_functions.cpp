// Python's `math` module on plain numbers, and torch's names for the same (`torch._sym_sqrt`).
#include <array>
#include <cmath>

#include "aten/functions/operand.h"
#include "aten/functions/python_numbers.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

double float_of(const Value& value) {
  if (value.is_tensor()) return value.leaf.toTensor().item<double>();
  return number_to_float(value);
}

// Calls the C function that CPython calls, and turns its failures into Python's.
template <double (*function)(double)>
Value apply(const BoundArguments& arguments) {
  const double x = float_of(arguments["x"]);
  const double result = function(x);
  if (std::isnan(result) && !std::isnan(x)) throw UserError("math domain error");
  if (std::isinf(result) && std::isfinite(x)) throw UserError("math range error");
  return c10::IValue(result);
}

template <double (*round)(double)>
Value apply_rounding(const BoundArguments& arguments) {
  const Value& x = arguments["x"];
  if (x.is_int() || x.is_bool()) return positive_number(x);
  return c10::IValue(float_to_integer(round(float_of(x))));
}

template <bool (*test)(double)>
Value apply_test(const BoundArguments& arguments) {
  return c10::IValue(test(float_of(arguments["x"])));
}

bool is_nan(double x) { return std::isnan(x); }
bool is_infinite(double x) { return std::isinf(x); }
bool is_finite(double x) { return std::isfinite(x); }

Value logarithm(const BoundArguments& arguments) {
  const double x = float_of(arguments["x"]);
  if (x <= 0) throw UserError("math domain error");
  const Value& base = arguments["base"];
  if (base.is_none()) return c10::IValue(std::log(x));
  const double base_number = float_of(base);
  if (base_number <= 0) throw UserError("math domain error");
  if (base_number == 1) throw UserError("float division by zero");
  return c10::IValue(std::log(x) / std::log(base_number));
}

Value power(const BoundArguments& arguments) {
  const double x = float_of(arguments["x"]);
  const double y = float_of(arguments["y"]);
  const double result = std::pow(x, y);
  if (std::isnan(result) && !std::isnan(x) && !std::isnan(y)) throw UserError("math domain error");
  if (std::isinf(result) && std::isfinite(x) && std::isfinite(y)) {
    throw UserError(x == 0 ? "math domain error" : "math range error");
  }
  return c10::IValue(result);
}

Value modulo(const BoundArguments& arguments) {
  const double x = float_of(arguments["x"]);
  const double y = float_of(arguments["y"]);
  const double result = std::fmod(x, y);
  if (std::isnan(result) && !std::isnan(x) && !std::isnan(y)) throw UserError("math domain error");
  return c10::IValue(result);
}

Value product(const BoundArguments& arguments) {
  Value total = arguments["start"];
  for (const Value& item : unpack(arguments["iterable"])) {
    total = calculate(BinaryOperation::multiply, total, item);
  }
  return total;
}

constexpr std::array kMathFunctions = std::to_array<TorchFunction>({
    {"math.sqrt", "x", apply<std::sqrt>},
    {"math.exp", "x", apply<std::exp>},
    {"math.expm1", "x", apply<std::expm1>},
    {"math.log", "x, base=None", logarithm},
    {"math.log2", "x", apply<std::log2>},
    {"math.log10", "x", apply<std::log10>},
    {"math.log1p", "x", apply<std::log1p>},
    {"math.sin", "x", apply<std::sin>},
    {"math.cos", "x", apply<std::cos>},
    {"math.tan", "x", apply<std::tan>},
    {"math.asin", "x", apply<std::asin>},
    {"math.acos", "x", apply<std::acos>},
    {"math.atan", "x", apply<std::atan>},
    {"math.sinh", "x", apply<std::sinh>},
    {"math.cosh", "x", apply<std::cosh>},
    {"math.tanh", "x", apply<std::tanh>},
    {"math.fabs", "x", apply<std::fabs>},
    {"math.floor", "x", apply_rounding<std::floor>},
    {"math.ceil", "x", apply_rounding<std::ceil>},
    {"math.trunc", "x", apply_rounding<std::trunc>},
    {"math.isnan", "x", apply_test<is_nan>},
    {"math.isinf", "x", apply_test<is_infinite>},
    {"math.isfinite", "x", apply_test<is_finite>},
    {"math.pow", "x, y", power},
    {"math.fmod", "x, y", modulo},
    {"math.atan2", "y, x",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(std::atan2(float_of(arguments["y"]), float_of(arguments["x"])));
     }},
    {"math.copysign", "x, y",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(std::copysign(float_of(arguments["x"]), float_of(arguments["y"])));
     }},
    {"math.prod", "iterable, *, start=1", product},
    {"torch._sym_sqrt", "x", apply<std::sqrt>},
    {"torch.sym_sqrt", "x", apply<std::sqrt>},
    {"torch._sym_log2", "x", apply<std::log2>},
    {"torch._sym_sin", "x", apply<std::sin>},
    {"torch._sym_cos", "x", apply<std::cos>},
    {"torch._sym_tan", "x", apply<std::tan>},
    {"torch._sym_asin", "x", apply<std::asin>},
    {"torch._sym_acos", "x", apply<std::acos>},
    {"torch._sym_atan", "x", apply<std::atan>},
    {"torch._sym_sinh", "x", apply<std::sinh>},
    {"torch._sym_cosh", "x", apply<std::cosh>},
    {"torch._sym_tanh", "x", apply<std::tanh>},
});

// What math.floor() and the like call.
constexpr std::array kMathMethods = std::to_array<TorchFunction>({
    {"__floor__", "x", apply_rounding<std::floor>},
    {"__ceil__", "x", apply_rounding<std::ceil>},
    {"__trunc__", "x", apply_rounding<std::trunc>},
});

}  // namespace

FunctionTable math_functions() { return kMathFunctions; }
FunctionTable math_methods() { return kMathMethods; }

}  // namespace assay::aten
