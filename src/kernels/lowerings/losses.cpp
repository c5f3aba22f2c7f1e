// Losses that look at their arguments' values, and raise. (Others are decompositions.)
#include <ATen/core/Reduction.h>

#include <array>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/reduction_loops.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

// The loss of one element, rounded as ATen's operators round it.
Value cross_entropy_of(Value x, Value y, ScalarType dtype) {
  Body& body = *x.body;
  body.check((x >= 0.0) & (x <= 1.0), "all elements of input should be between 0 and 1");
  body.check((y >= 0.0) & (y <= 1.0), "all elements of target should be between 0 and 1");
  // The logarithms are cut off at -100, by the operator's definition, so that no loss is infinite.
  const auto cut_off = [&](Value logarithm) {
    const Value log = rounded(logarithm, dtype);
    return where(log < -100.0, -100, log);
  };
  const Value log_false = cut_off(apply(Op::log1p, -x));
  const Value log_true = cut_off(apply(Op::log, x));
  const Value loss_of_false = rounded(rounded(y - 1.0, dtype) * log_false, dtype);
  return rounded(loss_of_false - rounded(y * log_true, dtype), dtype);
}

Refusal binary_cross_entropy(Call& call) {
  const TensorRef input = call.operand(0);
  const TensorRef target = call.operand(1);
  const ScalarType dtype = call.result_dtype();
  const std::int64_t reduction = call.integer(3);
  if (input.dtype != dtype || target.dtype != dtype) return "of two dtypes";
  if (input.sizes != target.sizes) return "of two sizes";
  const bool is_reduced_to_one = reduction != at::Reduction::None;
  const ReductionLoops loops(input, {});
  Body& body = is_reduced_to_one ? call.kernel(loops.outer()) : call.pointwise();
  if (is_reduced_to_one) body.begin_pass(loops.inner());
  const auto load = [&](const TensorRef& ref) {
    const TensorRef whole = expand(ref, input.sizes);
    return load_as(body, whole, is_reduced_to_one ? loops.index_of(whole) : body.index_of(whole),
                   dtype);
  };
  Value loss = cross_entropy_of(load(input), load(target), dtype);
  if (const auto weight = call.tensor(2)) loss = rounded(loss * load(*weight), dtype);
  if (!is_reduced_to_one) {
    body.store(call.result(), loss);
    return nullptr;
  }
  const Value sum = body.reduce(Op::reduce_sum, loss);
  body.begin_pass();
  const bool is_mean = reduction == at::Reduction::Mean;
  body.store(call.result(), loops.result_index(call.result()),
             is_mean ? sum / static_cast<double>(loops.count()) : sum);
  return nullptr;
}

}  // namespace

LoweringTable loss_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::binary_cross_entropy", "reduction", binary_cross_entropy},
  });
  return kRows;
}

}  // namespace assay::kernels
