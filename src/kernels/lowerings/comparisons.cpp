// Comparisons and logical operators: computed in the common dtype of the arguments, given as bool.
#include <array>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

template <Op op>
Refusal comparison(Call& call) {
  Body& body = call.pointwise();
  const ScalarType dtype = promoted_dtype(call, {0, 1});
  const Value x = call.value(body, 0, dtype);
  const Value y = call.value(body, 1, dtype);
  body.store(call.result(), body.compare(op, x, y));
  return nullptr;
}

template <Op op>
Refusal logical(Call& call) {
  Body& body = call.pointwise();
  const Value x = body.cast(body.load(call.operand(0)), ScalarType::Bool);
  const Value y = body.cast(body.load(call.operand(1)), ScalarType::Bool);
  body.store(call.result(), apply(op, x, y));
  return nullptr;
}

}  // namespace

LoweringTable comparison_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::eq.Scalar", "pointwise", comparison<Op::eq>},
      {"aten::eq.Tensor", "pointwise", comparison<Op::eq>},
      {"aten::ge.Scalar", "pointwise", comparison<Op::ge>},
      {"aten::ge.Tensor", "pointwise", comparison<Op::ge>},
      {"aten::gt.Scalar", "pointwise", comparison<Op::gt>},
      {"aten::gt.Tensor", "pointwise", comparison<Op::gt>},
      {"aten::le.Scalar", "pointwise", comparison<Op::le>},
      {"aten::le.Tensor", "pointwise", comparison<Op::le>},
      {"aten::logical_and", "pointwise", logical<Op::bitwise_and>},
      {"aten::logical_or", "pointwise", logical<Op::bitwise_or>},
      {"aten::logical_xor", "pointwise", logical<Op::bitwise_xor>},
      {"aten::lt.Scalar", "pointwise", comparison<Op::lt>},
      {"aten::lt.Tensor", "pointwise", comparison<Op::lt>},
      {"aten::ne.Scalar", "pointwise", comparison<Op::ne>},
      {"aten::ne.Tensor", "pointwise", comparison<Op::ne>},
  });
  return kRows;
}

}  // namespace assay::kernels
