#include "aten/unboxed_call.h"

#include "aten/trace_keys.h"

namespace assay::aten {

namespace {

bool is_tensor(const c10::Argument& argument) {
  return argument.real_type()->kind() == c10::TypeKind::TensorType &&
         argument.alias_info() == nullptr;
}

bool is_scalar(const c10::Argument& argument) {
  return argument.real_type()->kind() == c10::TypeKind::NumberType;
}

}  // namespace

at::Tensor float_constant(const c10::OperatorHandle& op, const c10::IValue& second) {
  const c10::OperatorName& name = op.operator_name();
  const bool is_arithmetic =
      name.overload_name == "Tensor" &&
      (name.name == "aten::add" || name.name == "aten::sub" || name.name == "aten::mul");
  if (!is_arithmetic || !second.isTensor()) return {};
  const at::Tensor& number = second.toTensor();
  // `x - True` is an error, and must stay one.
  if (!number.unsafeGetTensorImpl()->is_wrapped_number() || number.is_complex() ||
      number.scalar_type() == at::kBool) {
    return {};
  }
  const NotTracedScope not_traced;
  at::Tensor cast = number.to(at::kFloat);
  cast.unsafeGetTensorImpl()->set_wrapped_number(true);
  return cast;
}

UnboxedOperator find_unboxed(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const auto& arguments = schema.arguments();
  // Only ATen's: what a user registered may have any C++ signature, or none.
  if (!op.operator_name().name.starts_with("aten::") || schema.returns().size() != 1 ||
      !is_tensor(schema.returns()[0]) || arguments.empty() || !is_tensor(arguments[0])) {
    return {};
  }
  if (arguments.size() == 1) return op.typed<at::Tensor(const at::Tensor&)>();
  if (!is_tensor(arguments[1])) return {};
  if (arguments.size() == 2) return op.typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  if (arguments.size() == 3 && is_scalar(arguments[2])) {
    return op.typed<at::Tensor(const at::Tensor&, const at::Tensor&, const c10::Scalar&)>();
  }
  return {};
}

}  // namespace assay::aten
