// Cumulative sums, products and extrema along one dimension.
#include <array>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/reduction_loops.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

// ATen accumulates floating point in double.
template <Op op>
Refusal cumulative(Call& call) {
  const TensorRef input = call.operand(0);
  const ScalarType dtype = call.result_dtype();
  if (dtype == ScalarType::Bool) return "of bools";
  const ReductionLoops loops(input, {call.integer(1)});
  Body& body = call.kernel(loops.outer());
  body.begin_pass(loops.inner());
  const Value x = body.cast(body.load(input, loops.index_of(input)), dtype);
  const Value wide = body.cast(x, c10::isFloatingType(dtype) ? ScalarType::Double : dtype);
  const TensorRef result = call.result();
  body.store(result, loops.index_of(result), body.scan(op, wide));
  return nullptr;
}

}  // namespace

LoweringTable scan_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::cumprod", "scan", cumulative<Op::scan_prod>},
      {"aten::cumsum", "scan", cumulative<Op::scan_sum>},
  });
  return kRows;
}

}  // namespace assay::kernels
