// Arithmetic on two tensors, or on a tensor and a number, in their common dtype.
#include <array>
#include <cmath>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

// A factor of 1 is left out; floating point multiplies and adds with one rounding, as ATen does.
Value add_multiple(Body& body, Value x, Value y, const c10::Scalar& factor, ScalarType dtype,
                   bool subtract) {
  const bool is_floating = c10::isFloatingType(x.dtype);
  if (is_floating ? factor.toDouble() == 1 : factor.to<std::int64_t>() == 1) {
    return subtract ? x - y : x + y;
  }
  if (is_floating) {
    const double signed_factor = subtract ? -factor.toDouble() : factor.toDouble();
    return body.fma(y, rounded_constant(body, signed_factor, dtype), x);
  }
  const Value product = y * constant_like(x, factor);
  return subtract ? x - product : x + product;
}

Refusal addition(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const Value x = call.rounded_value(body, 0, dtype);
  const Value y = call.rounded_value(body, 1, dtype);
  if (dtype == ScalarType::Bool) {
    body.store(call.result(), call.flag(2) ? x | y : x);
  } else {
    body.store(call.result(), add_multiple(body, x, y, call.number(2), dtype, false));
  }
  return nullptr;
}

template <bool is_reversed>
Refusal subtraction(Call& call) {
  const ScalarType dtype = call.result_dtype();
  if (dtype == ScalarType::Bool) return "raises for bool";
  Body& body = call.pointwise();
  Value x = call.rounded_value(body, 0, dtype);
  Value y = call.rounded_value(body, 1, dtype);
  if (is_reversed) std::swap(x, y);
  body.store(call.result(), add_multiple(body, x, y, call.number(2), dtype, true));
  return nullptr;
}

template <Op op, Op op_of_bools>
Refusal arithmetic(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const Value x = call.rounded_value(body, 0, dtype);
  const Value y = call.rounded_value(body, 1, dtype);
  body.store(call.result(), apply(dtype == ScalarType::Bool ? op_of_bools : op, x, y));
  return nullptr;
}

// Of floating point, whatever the arguments are.
template <Op op>
Refusal float_arithmetic(Call& call) {
  if (!c10::isFloatingType(call.result_dtype())) return "not of floating point";
  return arithmetic<op, op>(call);
}

Refusal multiplication(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const Value x = call.rounded_value(body, 0, dtype);
  const Value y = call.factor(body, 1, dtype);
  body.store(call.result(), dtype == ScalarType::Bool ? x & y : x * y);
  return nullptr;
}

Refusal true_division(Call& call) {
  const ScalarType dtype = call.result_dtype();
  if (!c10::isFloatingType(dtype)) return "not of floating point";
  Body& body = call.pointwise();
  const Value x = call.rounded_value(body, 0, dtype);
  body.store(call.result(), x / call.factor(body, 1, dtype));
  return nullptr;
}

Refusal next_number(Call& call) {
  if (is_reduced(call.result_dtype())) return "the next number is another one in float";
  return float_arithmetic<Op::nextafter>(call);
}

// Whole quotients of two tensors of half or bfloat16: ATen rounds after each operation.
Value quotient_in_steps(Op op, Value x, Value y, ScalarType dtype) {
  const Value ratio = rounded(x / y, dtype);
  if (op == Op::div_trunc) return apply(Op::trunc, ratio);
  const Value rest = apply(Op::fmod, x, y);
  Value quotient = rounded(rounded(x - rest, dtype) / y, dtype);
  const Value is_above = ne(rest, 0) & apply(Op::bitwise_xor, y < 0, rest < 0);
  quotient = where(is_above, rounded(quotient - 1.0, dtype), quotient);
  Value whole = apply(Op::floor, quotient);
  whole = where(quotient - whole > 0.5, rounded(whole + 1.0, dtype), whole);
  whole = where(eq(quotient, 0), apply(Op::copysign, constant_like(x, 0), ratio), whole);
  return where(eq(y, 0), ratio, whole);
}

Refusal whole_quotient(Call& call, Op op) {
  const ScalarType dtype = call.result_dtype();
  if (dtype == ScalarType::Bool) return "raises for bool";
  Body& body = call.pointwise();
  const Value x = call.rounded_value(body, 0, dtype);
  const Value y = call.factor(body, 1, dtype);
  if (!c10::isFloatingType(dtype)) body.check(ne(y, 0), "ZeroDivisionError");
  const auto divisor = call.tensor(1);
  const bool in_steps = is_reduced(dtype) && divisor && element_count(divisor->sizes) != 1;
  body.store(call.result(), in_steps ? quotient_in_steps(op, x, y, dtype) : apply(op, x, y));
  return nullptr;
}

template <Op op>
Refusal rest_of_division(Call& call) {
  const ScalarType dtype = call.result_dtype();
  if (dtype == ScalarType::Bool) return "raises for bool";
  Body& body = call.pointwise();
  const Value x = call.rounded_value(body, 0, dtype);
  const Value y = call.rounded_value(body, 1, dtype);
  if (!c10::isFloatingType(dtype)) body.check(ne(y, 0), "ZeroDivisionError");
  body.store(call.result(), apply(op, x, y));
  return nullptr;
}

Refusal floor_division(Call& call) { return whole_quotient(call, Op::div_floor); }

Refusal division_with_mode(Call& call) {
  const std::string mode = call.text(2);
  if (mode == "floor") return whole_quotient(call, Op::div_floor);
  if (mode == "trunc") return whole_quotient(call, Op::div_trunc);
  return true_division(call);
}

// Powers that ATen computes by other means, with other roundings and infinities.
Value power_of(Value x, double exponent, ScalarType dtype) {
  const Value square = x * x;
  if (exponent == 2) return square;
  const bool in_steps = dtype == ScalarType::BFloat16;
  if (exponent == 3) return (in_steps ? rounded(square, dtype) : square) * x;
  if (c10::isFloatingType(x.dtype)) {
    // Not of half.
    if (exponent == 0.5 && dtype != ScalarType::Half) return apply(Op::sqrt, x);
    if (exponent == -0.5 && dtype != ScalarType::Half) return apply(Op::rsqrt, x);
    if (exponent == -1) return apply(Op::reciprocal, x);
    if (exponent == -2) return 1.0 / (in_steps ? rounded(square, dtype) : square);
  }
  return apply(Op::pow, x, rounded_constant(*x.body, exponent, dtype));
}

Refusal power_with_number(Call& call) {
  const ScalarType dtype = call.result_dtype();
  if (dtype == ScalarType::Bool) return "of bools";
  const double exponent = call.number(1).toDouble();
  Body& body = call.pointwise();
  const Value x = call.value(body, 0, dtype);
  if (exponent == 0) {
    body.store(call.result(), constant_like(x, 1));
  } else if (exponent == 1) {
    body.store(call.result(), x);
  } else if (!c10::isFloatingType(dtype) && exponent < 0) {
    return "raises for negative powers of integers";
  } else {
    body.store(call.result(), power_of(x, exponent, dtype));
  }
  return nullptr;
}

Refusal power(Call& call) {
  const ScalarType dtype = call.result_dtype();
  if (dtype == ScalarType::Bool) return "of bools";
  if (const auto base = call.optional_number(0); base && base->toDouble() == 1) {
    Body& body = call.pointwise();
    body.store(call.result(), body.constant(1, dtype));
    return nullptr;
  }
  return arithmetic<Op::pow, Op::pow>(call);
}

template <Op op>
Refusal bitwise(Call& call) {
  if (c10::isFloatingType(call.result_dtype())) return "raises for floating point";
  return arithmetic<op, op>(call);
}

template <Op op>
Refusal shift(Call& call) {
  if (!c10::isIntegralType(call.result_dtype(), false)) return "not of integers";
  return arithmetic<op, op>(call);
}

Refusal heaviside(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const Value x = call.value(body, 0, dtype);
  const Value at_zero = call.value(body, 1, dtype);
  if (dtype == ScalarType::Bool) {
    body.store(call.result(), x | at_zero);
  } else {
    body.store(call.result(), where(eq(x, 0), at_zero, body.cast(x > 0, x.dtype)));
  }
  return nullptr;
}

template <Op op>
Refusal log_product(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const Value x = call.rounded_value(body, 0, dtype);
  const Value y = call.rounded_value(body, 1, dtype);
  const Value product = x * rounded(apply(op, y), dtype);
  body.store(call.result(), where(apply(Op::isnan, y), y, where(eq(x, 0), 0, product)));
  return nullptr;
}

template <bool is_base_2>
Refusal log_of_sum(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  if (!c10::isFloatingType(dtype)) return "not of floating point";
  const Value x = call.value(body, 0, dtype);
  const Value y = call.value(body, 1, dtype);
  const Value larger = apply(Op::maximum, x, y);
  const Value distance = -apply(Op::abs, x - y);
  const Value small = is_base_2 ? apply(Op::log1p, apply(Op::exp2, distance)) * (1 / std::log(2.0))
                                : apply(Op::log1p, apply(Op::exp, distance));
  // Infinities of one sign would give NaN.
  const Value equal_infinities = apply(Op::isinf, x) & eq(x, y);
  body.store(call.result(), where(equal_infinities, x, larger + small));
  return nullptr;
}

}  // namespace

LoweringTable binary_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::__and__.Scalar", "pointwise", bitwise<Op::bitwise_and>},
      {"aten::__and__.Tensor", "pointwise", bitwise<Op::bitwise_and>},
      {"aten::__lshift__.Scalar", "pointwise", shift<Op::shift_left>},
      {"aten::__lshift__.Tensor", "pointwise", shift<Op::shift_left>},
      {"aten::__or__.Scalar", "pointwise", bitwise<Op::bitwise_or>},
      {"aten::__or__.Tensor", "pointwise", bitwise<Op::bitwise_or>},
      {"aten::__rshift__.Scalar", "pointwise", shift<Op::shift_right>},
      {"aten::__rshift__.Tensor", "pointwise", shift<Op::shift_right>},
      {"aten::__xor__.Scalar", "pointwise", bitwise<Op::bitwise_xor>},
      {"aten::__xor__.Tensor", "pointwise", bitwise<Op::bitwise_xor>},
      {"aten::add.Scalar", "pointwise", addition},
      {"aten::add.Tensor", "pointwise", addition},
      {"aten::atan2", "pointwise", float_arithmetic<Op::atan2>},
      {"aten::bitwise_and.Scalar", "pointwise", bitwise<Op::bitwise_and>},
      {"aten::bitwise_and.Scalar_Tensor", "pointwise", bitwise<Op::bitwise_and>},
      {"aten::bitwise_and.Tensor", "pointwise", bitwise<Op::bitwise_and>},
      {"aten::bitwise_left_shift.Scalar_Tensor", "pointwise", shift<Op::shift_left>},
      {"aten::bitwise_left_shift.Tensor", "pointwise", shift<Op::shift_left>},
      {"aten::bitwise_left_shift.Tensor_Scalar", "pointwise", shift<Op::shift_left>},
      {"aten::bitwise_or.Scalar", "pointwise", bitwise<Op::bitwise_or>},
      {"aten::bitwise_or.Scalar_Tensor", "pointwise", bitwise<Op::bitwise_or>},
      {"aten::bitwise_or.Tensor", "pointwise", bitwise<Op::bitwise_or>},
      {"aten::bitwise_right_shift.Scalar_Tensor", "pointwise", shift<Op::shift_right>},
      {"aten::bitwise_right_shift.Tensor", "pointwise", shift<Op::shift_right>},
      {"aten::bitwise_right_shift.Tensor_Scalar", "pointwise", shift<Op::shift_right>},
      {"aten::bitwise_xor.Scalar", "pointwise", bitwise<Op::bitwise_xor>},
      {"aten::bitwise_xor.Scalar_Tensor", "pointwise", bitwise<Op::bitwise_xor>},
      {"aten::bitwise_xor.Tensor", "pointwise", bitwise<Op::bitwise_xor>},
      {"aten::copysign.Scalar", "pointwise", float_arithmetic<Op::copysign>},
      {"aten::copysign.Tensor", "pointwise", float_arithmetic<Op::copysign>},
      {"aten::div.Scalar", "pointwise", true_division},
      {"aten::div.Scalar_mode", "pointwise", division_with_mode},
      {"aten::div.Tensor", "pointwise", true_division},
      {"aten::div.Tensor_mode", "pointwise", division_with_mode},
      {"aten::floor_divide", "pointwise", floor_division},
      {"aten::floor_divide.Scalar", "pointwise", floor_division},
      {"aten::fmax", "pointwise", arithmetic<Op::fmax, Op::bitwise_or>},
      {"aten::fmin", "pointwise", arithmetic<Op::fmin, Op::bitwise_and>},
      {"aten::fmod.Scalar", "pointwise", rest_of_division<Op::fmod>},
      {"aten::fmod.Tensor", "pointwise", rest_of_division<Op::fmod>},
      {"aten::heaviside", "pointwise", heaviside},
      {"aten::hypot", "pointwise", float_arithmetic<Op::hypot>},
      {"aten::logaddexp", "pointwise", log_of_sum<false>},
      {"aten::logaddexp2", "pointwise", log_of_sum<true>},
      {"aten::maximum", "pointwise", arithmetic<Op::maximum, Op::bitwise_or>},
      {"aten::minimum", "pointwise", arithmetic<Op::minimum, Op::bitwise_and>},
      {"aten::mul.Scalar", "pointwise", multiplication},
      {"aten::mul.Tensor", "pointwise", multiplication},
      {"aten::nextafter", "pointwise", next_number},
      {"aten::pow.Scalar", "pointwise", power},
      {"aten::pow.Tensor_Scalar", "pointwise", power_with_number},
      {"aten::pow.Tensor_Tensor", "pointwise", power},
      {"aten::remainder.Scalar", "pointwise", rest_of_division<Op::remainder>},
      {"aten::remainder.Scalar_Tensor", "pointwise", rest_of_division<Op::remainder>},
      {"aten::remainder.Tensor", "pointwise", rest_of_division<Op::remainder>},
      {"aten::rsub.Scalar", "pointwise", subtraction<true>},
      {"aten::rsub.Tensor", "pointwise", subtraction<true>},
      {"aten::special_xlog1py", "pointwise", log_product<Op::log1p>},
      {"aten::special_xlog1py.other_scalar", "pointwise", log_product<Op::log1p>},
      {"aten::special_xlog1py.self_scalar", "pointwise", log_product<Op::log1p>},
      {"aten::sub.Scalar", "pointwise", subtraction<false>},
      {"aten::sub.Tensor", "pointwise", subtraction<false>},
      {"aten::xlogy.Scalar_Other", "pointwise", log_product<Op::log>},
      {"aten::xlogy.Scalar_Self", "pointwise", log_product<Op::log>},
      {"aten::xlogy.Tensor", "pointwise", log_product<Op::log>},
  });
  return kRows;
}

}  // namespace assay::kernels
