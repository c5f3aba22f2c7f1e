#include "aten/functions/operand.h"

#include <ATen/ScalarOps.h>

#include "assay/error.h"
#include "aten/call.h"

namespace assay::aten {

namespace {

UserError expected(const char* what, const Value& found) {
  return UserError(std::string("expected ") + what + ", found " + type_name(found));
}

}  // namespace

Operand::Operand(const std::vector<std::int64_t>& numbers) {
  std::vector<Value> items;
  items.reserve(numbers.size());
  for (const std::int64_t number : numbers) items.emplace_back(c10::IValue(number));
  value = list_of(std::move(items));
}

Value run(const std::string& op, std::initializer_list<Operand> positional,
          std::initializer_list<NamedOperand> keywords) {
  Arguments arguments;
  arguments.positional.reserve(positional.size());
  for (const Operand& operand : positional) arguments.positional.push_back(operand.value);
  arguments.keywords.reserve(keywords.size());
  for (const NamedOperand& keyword : keywords) {
    arguments.keywords.push_back({keyword.name, keyword.operand.value});
  }
  return call(op, arguments, Dialect::operator_call);
}

at::Tensor run_tensor(const std::string& op, std::initializer_list<Operand> positional,
                      std::initializer_list<NamedOperand> keywords) {
  return tensor_of(run(op, positional, keywords));
}

Value size_tuple(at::IntArrayRef sizes) {
  Value value = Operand(sizes).value;
  value.kind = Value::Kind::tuple;
  return value;
}

Value tuple_of(std::vector<Value> items) {
  return Value::sequence(Value::Kind::tuple, std::move(items));
}

Value list_of(std::vector<Value> items) {
  return Value::sequence(Value::Kind::list, std::move(items));
}

bool holds_sequence(const Value& value) {
  return value.is_sequence() || (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple()));
}

std::vector<std::int64_t> integers_of(const Value& value) {
  std::vector<std::int64_t> numbers;
  for (const Value& item : unpack(value)) {
    if (!item.is_int()) throw expected("a list of ints", value);
    numbers.push_back(item.leaf.toInt());
  }
  return numbers;
}

std::vector<std::int64_t> repeat_to(const Value& value, std::size_t count) {
  if (value.is_int()) return std::vector<std::int64_t>(count, value.leaf.toInt());
  return integers_of(value);
}

std::vector<at::Tensor> tensors_of(const Value& value) {
  std::vector<at::Tensor> tensors;
  for (const Value& item : unpack(value)) tensors.push_back(tensor_of(item));
  return tensors;
}

at::Tensor tensor_of(const Value& value) {
  if (!value.is_tensor()) throw expected("a Tensor", value);
  return value.leaf.toTensor();
}

std::optional<at::Tensor> optional_tensor(const Value& value) {
  return value.is_none() ? std::nullopt : std::optional(tensor_of(value));
}

Operand optional_operand(const std::optional<at::Tensor>& tensor) {
  return tensor ? Operand(*tensor) : Operand(std::nullopt);
}

at::Scalar scalar_of(const Value& value) {
  if (!value.is_number()) throw expected("a number", value);
  return value.leaf.toScalar();
}

at::ScalarType dtype_of(const Value& value) {
  if (value.kind != Value::Kind::dtype) throw expected("a torch.dtype", value);
  return static_cast<at::ScalarType>(value.leaf.toInt());
}

c10::Device device_of(const Value& value) {
  if (value.is_leaf() && value.leaf.isDevice()) return value.leaf.toDevice();
  if (value.is_string()) return c10::Device(value.leaf.toStringRef());
  throw expected("a torch.device", value);
}

at::Tensor tensor_or_wrapped(const Value& value) {
  if (value.is_tensor()) return value.leaf.toTensor();
  if (!value.is_number()) throw expected("a Tensor or a number", value);
  at::Tensor tensor = at::scalar_to_tensor(value.leaf.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

bool truth_of(const Value& value) {
  if (holds_sequence(value)) return !unpack(value).empty();
  if (value.kind == Value::Kind::dict) return !value.items.empty();
  if (!value.is_leaf()) return true;
  const c10::IValue& leaf = value.leaf;
  if (leaf.isNone()) return false;
  if (leaf.isBool()) return leaf.toBool();
  if (leaf.isInt()) return leaf.toInt() != 0;
  if (leaf.isDouble()) return leaf.toDouble() != 0;
  if (leaf.isComplexDouble()) return leaf.toComplexDouble() != c10::complex<double>(0);
  if (leaf.isString()) return !leaf.toStringRef().empty();
  if (leaf.isTensor()) return leaf.toTensor().is_nonzero();
  return true;
}

}  // namespace assay::aten
