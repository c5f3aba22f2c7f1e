// Sums, products, extrema and moments over some dimensions.
#include <array>
#include <cmath>
#include <limits>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/reduction_loops.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

// Reduces what `element` makes of each loaded element, and stores what `finish` makes of the
// result. Computed in `dtype`.
template <typename Element, typename Finish>
Refusal reduce_over(Call& call, const Sizes& dimensions, Op op, ScalarType dtype,
                    const Element& element, const Finish& finish) {
  const TensorRef input = call.operand(0);
  const ReductionLoops loops(input, dimensions);
  if (element_count(loops.outer()) != element_count(call.result_sizes())) {
    return "an empty list of dimensions means none here";
  }
  Body& body = call.kernel(loops.outer());
  body.begin_pass(loops.inner());
  const Value x = load_as(body, input, loops.index_of(input), dtype);
  const Value reduced = body.reduce(op, element(x));
  body.begin_pass();
  const TensorRef result = call.result();
  body.store(result, loops.result_index(result), finish(reduced, loops.count()));
  return nullptr;
}

Value as_it_is(Value value) { return value; }
Value as_reduced(Value value, std::int64_t) { return value; }

Refusal reduce_plainly(Call& call, const Sizes& dimensions, Op op, ScalarType dtype) {
  return reduce_over(call, dimensions, op, dtype, as_it_is, as_reduced);
}

// Bools are summed only as what is asked for: a sum of bools has an integer dtype, unless `dtype`
// says bool.
Refusal sum_over(Call& call, const Sizes& dimensions) {
  const ScalarType dtype = call.result_dtype();
  const Op op = dtype == ScalarType::Bool ? Op::reduce_any : Op::reduce_sum;
  return reduce_plainly(call, dimensions, op, dtype);
}

Refusal product_over(Call& call, const Sizes& dimensions) {
  const ScalarType dtype = call.result_dtype();
  if (is_reduced(dtype)) return "products of halves are rounded after each factor";
  const Op op = dtype == ScalarType::Bool ? Op::reduce_all : Op::reduce_prod;
  return reduce_plainly(call, dimensions, op, dtype);
}

Refusal mean_over(Call& call, const Sizes& dimensions) {
  const ScalarType dtype = call.result_dtype();
  if (!c10::isFloatingType(dtype)) return "raises for integers";
  return reduce_over(
      call, dimensions, Op::reduce_sum, dtype, as_it_is,
      [](Value sum, std::int64_t count) { return sum / static_cast<double>(count); });
}

Refusal extremum_over(Call& call, const Sizes& dimensions, bool is_max) {
  const ScalarType dtype = call.result_dtype();
  const Op of_bools = is_max ? Op::reduce_any : Op::reduce_all;
  const Op of_numbers = is_max ? Op::reduce_max : Op::reduce_min;
  return reduce_plainly(call, dimensions, dtype == ScalarType::Bool ? of_bools : of_numbers, dtype);
}

Refusal truth_over(Call& call, const Sizes& dimensions, bool is_any) {
  return reduce_over(
      call, dimensions, is_any ? Op::reduce_any : Op::reduce_all, call.operand(0).dtype,
      [](Value x) { return cast(x, ScalarType::Bool); }, as_reduced);
}

Sizes lone_dimension(const Call& call, std::size_t position) {
  return call.is_none(position) ? Sizes() : Sizes{call.integer(position)};
}

Refusal sum_all(Call& call) { return sum_over(call, {}); }
Refusal sum_dims(Call& call) { return sum_over(call, call.integers(1)); }
Refusal product_all(Call& call) { return product_over(call, {}); }
Refusal product_dim(Call& call) { return product_over(call, {call.integer(1)}); }
Refusal mean_all(Call& call) { return mean_over(call, {}); }
Refusal mean_dims(Call& call) { return mean_over(call, call.integers(1)); }
Refusal amax(Call& call) { return extremum_over(call, call.integers(1), true); }
Refusal amin(Call& call) { return extremum_over(call, call.integers(1), false); }
Refusal max_all(Call& call) { return extremum_over(call, {}, true); }
Refusal min_all(Call& call) { return extremum_over(call, {}, false); }
Refusal any_all(Call& call) { return truth_over(call, {}, true); }
Refusal any_dim(Call& call) { return truth_over(call, {call.integer(1)}, true); }
Refusal any_dims(Call& call) { return truth_over(call, call.integers(1), true); }
Refusal all_all(Call& call) { return truth_over(call, {}, false); }
Refusal all_dim(Call& call) { return truth_over(call, {call.integer(1)}, false); }
Refusal all_dims(Call& call) { return truth_over(call, call.integers(1), false); }

Refusal nansum(Call& call) {
  const ScalarType dtype = call.result_dtype();
  return reduce_over(
      call, call.integers(1), Op::reduce_sum, dtype,
      [](Value x) { return c10::isFloatingType(x.dtype) ? where(apply(Op::isnan, x), 0, x) : x; },
      as_reduced);
}

Refusal count_nonzero(Call& call) {
  const Sizes dimensions = call.is_none(1) ? Sizes() : call.integers(1);
  return reduce_over(
      call, dimensions, Op::reduce_sum, call.operand(0).dtype,
      [](Value x) { return cast(cast(x, ScalarType::Bool), ScalarType::Long); }, as_reduced);
}

Refusal aminmax(Call& call) {
  const TensorRef input = call.operand(0);
  const ReductionLoops loops(input, lone_dimension(call, 1));
  Body& body = call.kernel(loops.outer());
  body.begin_pass(loops.inner());
  const Value x = load_as(body, input, loops.index_of(input), input.dtype);
  const bool is_bool = input.dtype == ScalarType::Bool;
  const Value low = body.reduce(is_bool ? Op::reduce_all : Op::reduce_min, x);
  const Value high = body.reduce(is_bool ? Op::reduce_any : Op::reduce_max, x);
  body.begin_pass();
  body.store(call.result(0), loops.result_index(call.result(0)), low);
  body.store(call.result(1), loops.result_index(call.result(1)), high);
  return nullptr;
}

// The values, if there are two results, and the positions of the first extrema.
Refusal positions_over(Call& call, const Sizes& dimensions, bool is_max) {
  const TensorRef input = call.operand(0);
  const ReductionLoops loops(input, dimensions);
  if (loops.count() == 0) return "an extremum of nothing";
  Body& body = call.kernel(loops.outer());
  body.begin_pass(loops.inner());
  Value x = load_as(body, input, loops.index_of(input), input.dtype);
  if (x.dtype == ScalarType::Bool) x = body.cast(x, ScalarType::Byte);
  const Value position = body.index(loops.position());
  const bool has_values = call.result_count() == 2;
  Value extremum;
  if (has_values) extremum = body.reduce(is_max ? Op::reduce_max : Op::reduce_min, x);
  const Value first =
      body.reduce_position(is_max ? Op::reduce_argmax : Op::reduce_argmin, x, position);
  body.begin_pass();
  if (has_values) body.store(call.result(0), loops.result_index(call.result(0)), extremum);
  const TensorRef positions = call.result(has_values ? 1 : 0);
  body.store(positions, loops.result_index(positions), first);
  return nullptr;
}

template <bool is_max>
Refusal extremum_and_position(Call& call) {
  return positions_over(call, {call.integer(1)}, is_max);
}

template <bool is_max>
Refusal position_of_extremum(Call& call) {
  return positions_over(call, lone_dimension(call, 1), is_max);
}

enum class Moment { variance, deviation };

// Two passes: the mean, then the squares of the distances from it.
Refusal moment_over(Call& call, Moment moment, bool has_mean) {
  const TensorRef input = call.operand(0);
  const ScalarType dtype = call.result_dtype();
  const ReductionLoops loops(input, call.is_none(1) ? Sizes() : call.integers(1));
  const auto given = call.optional_number(2);
  const double correction = given ? given->toDouble() : 1;
  const auto count = static_cast<double>(loops.count());
  Body& body = call.kernel(loops.outer());
  body.begin_pass(loops.inner());
  const Index index = loops.index_of(input);
  const Value sum = body.reduce(Op::reduce_sum, load_as(body, input, index, dtype));
  body.begin_pass();
  const Value mean = sum / count;
  body.begin_pass(loops.inner());
  const Value distance = load_as(body, input, index, dtype) - mean;
  const Value squares = body.reduce(Op::reduce_sum, distance * distance);
  body.begin_pass();
  Value result = squares / std::max(count - correction, 0.0);
  if (moment == Moment::deviation) result = apply(Op::sqrt, result);
  body.store(call.result(), loops.result_index(call.result()), result);
  if (has_mean) body.store(call.result(1), loops.result_index(call.result(1)), mean);
  return nullptr;
}

template <Moment kind, bool has_mean>
Refusal moment(Call& call) {
  return moment_over(call, kind, has_mean);
}

Refusal vector_norm(Call& call) {
  const ScalarType dtype = call.result_dtype();
  const double order = call.floating(1);
  const Sizes dimensions = call.is_none(2) ? Sizes() : call.integers(2);
  const auto magnitude = [](Value x) { return apply(Op::abs, x); };
  if (std::isinf(order)) {
    const Op op = order > 0 ? Op::reduce_max : Op::reduce_min;
    return reduce_over(call, dimensions, op, dtype, magnitude, as_reduced);
  }
  if (order == 0) {
    return reduce_over(
        call, dimensions, Op::reduce_sum, dtype, [](Value x) { return cast(ne(x, 0), x.dtype); },
        as_reduced);
  }
  if (order == 1) {
    return reduce_over(call, dimensions, Op::reduce_sum, dtype, magnitude, as_reduced);
  }
  if (order == 2) {
    return reduce_over(
        call, dimensions, Op::reduce_sum, dtype, [](Value x) { return x * x; },
        [](Value sum, std::int64_t) { return apply(Op::sqrt, sum); });
  }
  return reduce_over(
      call, dimensions, Op::reduce_sum, dtype,
      [&](Value x) { return apply(Op::pow, apply(Op::abs, x), constant_like(x, order)); },
      [&](Value sum, std::int64_t) { return apply(Op::pow, sum, constant_like(sum, 1 / order)); });
}

Refusal logsumexp(Call& call) {
  const ScalarType dtype = call.result_dtype();
  const TensorRef input = call.operand(0);
  const ReductionLoops loops(input, call.integers(1));
  if (loops.count() == 0) return "an extremum of nothing";
  Body& body = call.kernel(loops.outer());
  body.begin_pass(loops.inner());
  const Index index = loops.index_of(input);
  const Value largest = body.reduce(Op::reduce_max, load_as(body, input, index, dtype));
  body.begin_pass();
  // Infinity minus infinity is no help.
  const Value shift = where(apply(Op::isinf, largest), 0, largest);
  body.begin_pass(loops.inner());
  const Value sum =
      body.reduce(Op::reduce_sum, apply(Op::exp, load_as(body, input, index, dtype) - shift));
  body.begin_pass();
  body.store(call.result(), loops.result_index(call.result()), apply(Op::log, sum) + shift);
  return nullptr;
}

}  // namespace

LoweringTable reduction_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::all", "reduction", all_all},
      {"aten::all.dim", "reduction", all_dim},
      {"aten::all.dims", "reduction", all_dims},
      {"aten::amax", "reduction", amax},
      {"aten::amin", "reduction", amin},
      {"aten::aminmax", "reduction", aminmax},
      {"aten::any", "reduction", any_all},
      {"aten::any.dim", "reduction", any_dim},
      {"aten::any.dims", "reduction", any_dims},
      {"aten::argmax", "reduction", position_of_extremum<true>},
      {"aten::argmin", "reduction", position_of_extremum<false>},
      {"aten::count_nonzero", "reduction", count_nonzero},
      {"aten::count_nonzero.dim_IntList", "reduction", count_nonzero},
      {"aten::linalg_vector_norm", "reduction", vector_norm},
      {"aten::logsumexp", "reduction", logsumexp},
      {"aten::max", "reduction", max_all},
      {"aten::max.dim", "reduction", extremum_and_position<true>},
      {"aten::mean", "reduction", mean_all},
      {"aten::mean.dim", "reduction", mean_dims},
      {"aten::min", "reduction", min_all},
      {"aten::min.dim", "reduction", extremum_and_position<false>},
      {"aten::nansum", "reduction", nansum},
      {"aten::prod", "reduction", product_all},
      {"aten::prod.dim_int", "reduction", product_dim},
      {"aten::std.correction", "reduction", moment<Moment::deviation, false>},
      {"aten::std_mean.correction", "reduction", moment<Moment::deviation, true>},
      {"aten::sum", "reduction", sum_all},
      {"aten::sum.dim_IntList", "reduction", sum_dims},
      {"aten::var.correction", "reduction", moment<Moment::variance, false>},
      {"aten::var_mean.correction", "reduction", moment<Moment::variance, true>},
  });
  return kRows;
}

}  // namespace assay::kernels
