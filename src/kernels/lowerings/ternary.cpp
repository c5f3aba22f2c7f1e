// Operators of three arguments, element by element: where, clamp, lerp, addcmul.
#include <array>
#include <cmath>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

Refusal where_lowering(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const Value condition = body.cast(body.load(call.operand(0)), ScalarType::Bool);
  body.store(call.result(),
             where(condition, call.value(body, 1, dtype), call.value(body, 2, dtype)));
  return nullptr;
}

Refusal masked_fill(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const Value x = call.value(body, 0, dtype);
  const Value mask = body.cast(body.load(call.operand(1)), ScalarType::Bool);
  body.store(call.result(), where(mask, call.value(body, 2, dtype), x));
  return nullptr;
}

// A NaN stays one; a bound that is NaN makes everything NaN.
Refusal clamp_with_numbers(Call& call, std::optional<c10::Scalar> low,
                           std::optional<c10::Scalar> high) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const auto is_nan = [](const std::optional<c10::Scalar>& bound) {
    return bound && bound->isFloatingPoint() && std::isnan(bound->toDouble());
  };
  if (is_nan(low) || is_nan(high)) {
    body.store(call.result(), body.constant(std::nan(""), compute_dtype(dtype)));
    return nullptr;
  }
  // ATen rounds the bounds to the dtype.
  const auto bound = [&](const c10::Scalar& number) {
    return rounded_constant(body, number, dtype);
  };
  Value x = call.value(body, 0, dtype);
  if (low) {
    const Value limit = bound(*low);
    x = where(x < limit, limit, x);
  }
  if (high) {
    const Value limit = bound(*high);
    x = where(x > limit, limit, x);
  }
  body.store(call.result(), x);
  return nullptr;
}

Refusal clamp(Call& call) {
  return clamp_with_numbers(call, call.optional_number(1), call.optional_number(2));
}
Refusal clamp_min(Call& call) { return clamp_with_numbers(call, call.number(1), std::nullopt); }
Refusal clamp_max(Call& call) { return clamp_with_numbers(call, std::nullopt, call.number(1)); }

template <Op first, Op second>
Refusal clamp_with_tensors(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  const bool is_bool = dtype == ScalarType::Bool;
  Value x = call.value(body, 0, dtype);
  const auto bound = [&](Op op, std::size_t position) {
    if (call.is_none(position)) return;
    if (is_bool) op = op == Op::maximum ? Op::bitwise_or : Op::bitwise_and;
    x = apply(op, x, call.value(body, position, dtype));
  };
  bound(first, 1);
  if (first != second) bound(second, 2);
  body.store(call.result(), x);
  return nullptr;
}

Refusal lerp(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  if (!c10::isFloatingType(dtype)) return "not of floating point";
  const Value start = call.value(body, 0, dtype);
  const Value end = call.value(body, 1, dtype);
  const Value weight = call.value(body, 2, dtype);
  const Value is_small = apply(Op::abs, weight) < 0.5;
  body.store(call.result(), body.fma(where(is_small, weight, weight - 1.0), end - start,
                                     where(is_small, start, end)));
  return nullptr;
}

template <bool divides>
Refusal add_combined(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = call.result_dtype();
  if (dtype == ScalarType::Bool) return "of bools";
  if (divides && !c10::isFloatingType(dtype)) return "raises for integers";
  const Value self = call.value(body, 0, dtype);
  Value first = call.value(body, 1, dtype);
  const Value second = call.value(body, 2, dtype);
  const c10::Scalar factor = call.number(3);
  if (factor.toDouble() != 1) first = constant_like(first, factor) * first;
  body.store(call.result(), self + (divides ? first / second : first * second));
  return nullptr;
}

}  // namespace

LoweringTable ternary_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::addcdiv", "pointwise", add_combined<true>},
      {"aten::addcmul", "pointwise", add_combined<false>},
      {"aten::clamp", "pointwise", clamp},
      {"aten::clamp.Tensor", "pointwise", clamp_with_tensors<Op::maximum, Op::minimum>},
      {"aten::clamp_max", "pointwise", clamp_max},
      {"aten::clamp_max.Tensor", "pointwise", clamp_with_tensors<Op::minimum, Op::minimum>},
      {"aten::clamp_min", "pointwise", clamp_min},
      {"aten::clamp_min.Tensor", "pointwise", clamp_with_tensors<Op::maximum, Op::maximum>},
      {"aten::lerp.Scalar", "pointwise", lerp},
      {"aten::lerp.Tensor", "pointwise", lerp},
      {"aten::masked_fill.Scalar", "pointwise", masked_fill},
      {"aten::masked_fill.Tensor", "pointwise", masked_fill},
      {"aten::where.self", "pointwise", where_lowering},
  });
  return kRows;
}

}  // namespace assay::kernels
