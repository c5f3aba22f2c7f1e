// Operators of one tensor, element by element.
#include <array>
#include <limits>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

// What is computed in floating point, also of integers.
template <Op op>
Refusal float_function(Call& call) {
  Body& body = call.pointwise();
  body.store(call.result(), apply(op, call.value(body, 0, call.result_dtype())));
  return nullptr;
}

// What keeps the dtype. Integers are whole already, so that rounding them is a copy.
template <Op op>
Refusal rounding(Call& call) {
  Body& body = call.pointwise();
  const Value x = call.value(body, 0, call.result_dtype());
  body.store(call.result(), c10::isFloatingType(x.dtype) ? apply(op, x) : x);
  return nullptr;
}

Refusal negation(Call& call) {
  if (call.result_dtype() == ScalarType::Bool) return "raises for bool";
  Body& body = call.pointwise();
  body.store(call.result(), -call.value(body, 0, call.result_dtype()));
  return nullptr;
}

Refusal absolute(Call& call) {
  Body& body = call.pointwise();
  const Value x = call.value(body, 0, call.result_dtype());
  const bool is_unsigned = x.dtype == ScalarType::Bool || x.dtype == ScalarType::Byte;
  body.store(call.result(), is_unsigned ? x : apply(Op::abs, x));
  return nullptr;
}

Refusal sign(Call& call) {
  Body& body = call.pointwise();
  const Value x = call.value(body, 0, call.result_dtype());
  body.store(call.result(), x.dtype == ScalarType::Bool ? x : apply(Op::sign, x));
  return nullptr;
}

Value loaded_for_test(Call& call, Body& body) { return call.value(body, 0, call.operand(0).dtype); }

// False for all integers.
template <Op op>
Refusal float_test(Call& call) {
  Body& body = call.pointwise();
  const Value x = loaded_for_test(call, body);
  body.store(call.result(),
             c10::isFloatingType(x.dtype) ? apply(op, x) : body.constant(false, ScalarType::Bool));
  return nullptr;
}

template <bool is_positive>
Refusal signed_infinity(Call& call) {
  Body& body = call.pointwise();
  const Value x = loaded_for_test(call, body);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  body.store(call.result(), c10::isFloatingType(x.dtype)
                                ? eq(x, is_positive ? kInfinity : -kInfinity)
                                : body.constant(false, ScalarType::Bool));
  return nullptr;
}

Refusal sign_bit(Call& call) {
  Body& body = call.pointwise();
  const Value x = loaded_for_test(call, body);
  if (c10::isFloatingType(x.dtype)) {
    body.store(call.result(), apply(Op::signbit, x));
  } else if (x.dtype == ScalarType::Bool || x.dtype == ScalarType::Byte) {
    body.store(call.result(), body.constant(false, ScalarType::Bool));
  } else {
    body.store(call.result(), x < 0);
  }
  return nullptr;
}

Refusal logical_negation(Call& call) {
  Body& body = call.pointwise();
  body.store(call.result(), !cast(loaded_for_test(call, body), ScalarType::Bool));
  return nullptr;
}

Refusal bitwise_negation(Call& call) {
  Body& body = call.pointwise();
  const Value x = loaded_for_test(call, body);
  body.store(call.result(), x.dtype == ScalarType::Bool ? !x : apply(Op::bitwise_not, x));
  return nullptr;
}

Refusal relu(Call& call) {
  Body& body = call.pointwise();
  const Value x = call.value(body, 0, call.result_dtype());
  body.store(call.result(), where(x < 0, 0, x));
  return nullptr;
}

Refusal nan_to_num(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const Value x = call.value(body, 0, dtype);
  if (!c10::isFloatingType(dtype)) {
    body.store(call.result(), x);
    return nullptr;
  }
  const auto limits = [&]() -> std::pair<double, double> {
    switch (dtype) {
      case ScalarType::Double:
        return {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
      case ScalarType::Half:
        return {-65504.0, 65504.0};
      case ScalarType::BFloat16:
        return {-0x1.FEp127, 0x1.FEp127};
      default:
        return {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};
    }
  }();
  const auto number = [&](std::size_t position, double otherwise) {
    const auto given = call.optional_number(position);
    return given ? given->toDouble() : otherwise;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value result = where(apply(Op::isnan, x), number(1, 0), x);
  result = where(eq(x, kInfinity), number(2, limits.second), result);
  result = where(eq(x, -kInfinity), number(3, limits.first), result);
  body.store(call.result(), result);
  return nullptr;
}

constexpr double kPi = 3.14159265358979323846;

template <bool to_degrees>
Refusal angle_unit(Call& call) {
  Body& body = call.pointwise();
  const Value x = call.value(body, 0, call.result_dtype());
  body.store(call.result(), x * (to_degrees ? 180.0 / kPi : kPi / 180.0));
  return nullptr;
}

Refusal angle(Call& call) {
  Body& body = call.pointwise();
  const Value x = call.value(body, 0, call.result_dtype());
  Value result = where(x < 0, constant_like(x, kPi), constant_like(x, 0));
  body.store(call.result(), where(apply(Op::isnan, x), x, result));
  return nullptr;
}

}  // namespace

LoweringTable unary_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::_neg_view", "pointwise", negation},
      {"aten::abs", "pointwise", absolute},
      {"aten::acos", "pointwise", float_function<Op::acos>},
      {"aten::acosh", "pointwise", float_function<Op::acosh>},
      {"aten::angle", "pointwise", angle},
      {"aten::asin", "pointwise", float_function<Op::asin>},
      {"aten::asinh", "pointwise", float_function<Op::asinh>},
      {"aten::atan", "pointwise", float_function<Op::atan>},
      {"aten::atanh", "pointwise", float_function<Op::atanh>},
      {"aten::bitwise_not", "pointwise", bitwise_negation},
      {"aten::ceil", "pointwise", rounding<Op::ceil>},
      {"aten::cos", "pointwise", float_function<Op::cos>},
      {"aten::cosh", "pointwise", float_function<Op::cosh>},
      {"aten::deg2rad", "pointwise", angle_unit<false>},
      {"aten::digamma", "pointwise", float_function<Op::digamma>},
      {"aten::erf", "pointwise", float_function<Op::erf>},
      {"aten::erfc", "pointwise", float_function<Op::erfc>},
      {"aten::erfinv", "pointwise", float_function<Op::erfinv>},
      {"aten::exp", "pointwise", float_function<Op::exp>},
      {"aten::exp2", "pointwise", float_function<Op::exp2>},
      {"aten::expm1", "pointwise", float_function<Op::expm1>},
      {"aten::floor", "pointwise", rounding<Op::floor>},
      {"aten::frac", "pointwise", rounding<Op::frac>},
      {"aten::isinf", "pointwise", float_test<Op::isinf>},
      {"aten::isnan", "pointwise", float_test<Op::isnan>},
      {"aten::isneginf", "pointwise", signed_infinity<false>},
      {"aten::isposinf", "pointwise", signed_infinity<true>},
      {"aten::lgamma", "pointwise", float_function<Op::lgamma>},
      {"aten::log", "pointwise", float_function<Op::log>},
      {"aten::log10", "pointwise", float_function<Op::log10>},
      {"aten::log1p", "pointwise", float_function<Op::log1p>},
      {"aten::log2", "pointwise", float_function<Op::log2>},
      {"aten::logical_not", "pointwise", logical_negation},
      {"aten::nan_to_num", "pointwise", nan_to_num},
      {"aten::neg", "pointwise", negation},
      {"aten::rad2deg", "pointwise", angle_unit<true>},
      {"aten::reciprocal", "pointwise", float_function<Op::reciprocal>},
      {"aten::relu", "pointwise", relu},
      {"aten::round", "pointwise", rounding<Op::round>},
      {"aten::rsqrt", "pointwise", float_function<Op::rsqrt>},
      {"aten::sgn", "pointwise", sign},
      {"aten::sigmoid", "pointwise", float_function<Op::sigmoid>},
      {"aten::sign", "pointwise", sign},
      {"aten::signbit", "pointwise", sign_bit},
      {"aten::sin", "pointwise", float_function<Op::sin>},
      {"aten::sinh", "pointwise", float_function<Op::sinh>},
      {"aten::sqrt", "pointwise", float_function<Op::sqrt>},
      {"aten::tan", "pointwise", float_function<Op::tan>},
      {"aten::tanh", "pointwise", float_function<Op::tanh>},
      {"aten::trunc", "pointwise", rounding<Op::trunc>},
  });
  return kRows;
}

}  // namespace assay::kernels
