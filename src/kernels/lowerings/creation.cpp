// Tensors made of numbers: fills, ranges, the identity matrix.
#include <array>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

Refusal fill_result(Call& call, const c10::Scalar& number) {
  if (number.isComplex()) return "a complex number";
  Body& body = call.pointwise();
  body.store(call.result(), body.constant(number, call.result_dtype()));
  return nullptr;
}

template <int number>
Refusal filled_with(Call& call) {
  return fill_result(call, number);
}

template <std::size_t position>
Refusal filled_with_argument(Call& call) {
  if (const auto source = call.tensor(position)) {
    Body& body = call.pointwise();
    body.store(call.result(), body.load(*source));
    return nullptr;
  }
  return fill_result(call, call.number(position));
}

Refusal range(Call& call, const c10::Scalar& start, const c10::Scalar& step) {
  Body& body = call.pointwise();
  if (c10::isFloatingType(call.result_dtype())) {
    // ATen computes ranges of all floating-point dtypes in double.
    const Value number = body.cast(body.loop_index(0), ScalarType::Double);
    body.store(call.result(), start.toDouble() + number * step.toDouble());
  } else {
    body.store(call.result(), body.index({start.to<std::int64_t>(), {step.to<std::int64_t>()}}));
  }
  return nullptr;
}

Refusal arange(Call& call) { return range(call, 0, 1); }
Refusal arange_from(Call& call) { return range(call, call.number(0), 1); }
Refusal arange_with_step(Call& call) { return range(call, call.number(0), call.number(2)); }

Refusal linspace(Call& call) {
  const std::int64_t steps = call.integer(2);
  const ScalarType dtype = call.result_dtype();
  if (dtype != ScalarType::Float && dtype != ScalarType::Double) return "not of float or double";
  Body& body = call.pointwise();
  if (steps == 1) {
    body.store(call.result(), body.constant(call.number(0), dtype));
    return nullptr;
  }
  // The step is rounded to the dtype; the second half is counted from the end.
  const bool is_float = dtype == ScalarType::Float;
  const double start = call.floating(0);
  const double end = call.floating(1);
  const double step = is_float ? (static_cast<float>(end) - static_cast<float>(start)) /
                                     static_cast<float>(steps - 1)
                               : (end - start) / static_cast<double>(steps - 1);
  const Value number = body.cast(body.loop_index(0), dtype);
  const Value from_end = body.cast(body.index({steps - 1, {-1}}), dtype);
  const Value is_first_half = body.condition({{.index = {0, {1}}, .lower = 0, .upper = steps / 2}});
  body.store(call.result(), where(is_first_half, start + number * step, end - from_end * step));
  return nullptr;
}

Refusal eye(Call& call) {
  Body& body = call.pointwise();
  const Condition on_diagonal{.index = {0, {1, -1}}, .lower = 0, .upper = 1};
  body.store(call.result(), body.condition({on_diagonal}));
  return nullptr;
}

}  // namespace

LoweringTable creation_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::arange", "creation", arange},
      {"aten::arange.start", "creation", arange_from},
      {"aten::arange.start_step", "creation", arange_with_step},
      {"aten::eye", "creation", eye},
      {"aten::eye.m", "creation", eye},
      {"aten::fill.Scalar", "creation", filled_with_argument<1>},
      {"aten::fill.Tensor", "creation", filled_with_argument<1>},
      {"aten::full", "creation", filled_with_argument<1>},
      {"aten::full_like", "creation", filled_with_argument<1>},
      {"aten::linspace", "creation", linspace},
      {"aten::new_full", "creation", filled_with_argument<2>},
      {"aten::new_ones", "creation", filled_with<1>},
      {"aten::new_zeros", "creation", filled_with<0>},
      {"aten::ones", "creation", filled_with<1>},
      {"aten::ones_like", "creation", filled_with<1>},
      {"aten::scalar_tensor", "creation", filled_with_argument<0>},
      {"aten::zero", "creation", filled_with<0>},
      {"aten::zeros", "creation", filled_with<0>},
      {"aten::zeros_like", "creation", filled_with<0>},
  });
  return kRows;
}

}  // namespace assay::kernels
