#include "aten/convert.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::aten {

namespace {

using c10::IValue;
using c10::TypeKind;

constexpr int kNumberToFloat = 1;
constexpr int kOneToList = 1;
constexpr int kBoolToInt = 1;
constexpr int kNumberToTensor = 4;

std::optional<IValue> convert_to(const Value& value, const c10::Type& type,
                                 std::optional<std::int32_t> list_length, int& cost);

// A number given for a tensor becomes a 0-dim one that does not take part in type promotion.
IValue to_wrapped_number(const Value& value) {
  at::Tensor tensor = at::scalar_to_tensor(value.leaf.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// The operators for which PyTorch accepts a number where the schema says Tensor.
bool takes_numbers_for_tensors(std::string_view qualified_name) {
  static constexpr std::array<std::string_view, 25> kNames = {
      "_conj",         "_to_copy", "add",      "add_",      "add_out",  "copy",
      "copy_",         "div",      "div_",     "divide",    "divide_",  "floor_divide",
      "floor_divide_", "mul",      "mul_",     "mul_out",   "multiply", "multiply_",
      "sub",           "sub_",     "subtract", "subtract_", "to",       "true_divide",
      "true_divide_"};
  static_assert(std::ranges::is_sorted(kNames));
  const auto colons = qualified_name.rfind(':');
  return std::ranges::binary_search(kNames, qualified_name.substr(colons + 1));
}

std::optional<IValue> to_tensor(const Value& value, int& cost) {
  if (value.is_tensor()) return value.leaf;
  if (!value.is_number()) return std::nullopt;
  cost += kNumberToTensor;
  return to_wrapped_number(value);
}

std::optional<IValue> to_float(const Value& value, int& cost) {
  if (value.is_float()) return value.leaf;
  if (!value.is_leaf()) return std::nullopt;
  cost += kNumberToFloat;
  if (value.leaf.isInt()) return static_cast<double>(value.leaf.toInt());
  if (value.leaf.isBool()) return value.leaf.toBool() ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<IValue> to_int(const Value& value, int& cost) {
  if (value.is_int()) return value.leaf;
  if (value.is_bool()) {
    cost += kBoolToInt;
    return static_cast<std::int64_t>(value.leaf.toBool());
  }
  return std::nullopt;
}

std::optional<IValue> to_enumeration(const Value& value, Value::Kind kind) {
  if (value.kind != kind) return std::nullopt;
  return value.leaf;
}

std::optional<IValue> to_device(const Value& value) {
  if (!value.is_leaf()) return std::nullopt;
  if (value.leaf.isDevice()) return value.leaf;
  if (value.leaf.isString()) {
    try {
      return c10::Device(value.leaf.toStringRef());
    } catch (const c10::Error&) {
      return std::nullopt;  // not the name of a device
    }
  }
  return std::nullopt;
}

template <typename T, typename Read>
std::optional<IValue> typed_list(const std::vector<IValue>& items, Read read) {
  c10::List<T> list;
  list.reserve(items.size());
  for (const IValue& item : items) list.push_back(read(item));
  return list;
}

std::optional<IValue> make_list(const c10::Type& element, const std::vector<IValue>& items) {
  switch (element.kind()) {
    case TypeKind::TensorType:
      return typed_list<at::Tensor>(items, [](const IValue& item) { return item.toTensor(); });
    case TypeKind::SymIntType:
    case TypeKind::IntType:
      return typed_list<std::int64_t>(items, [](const IValue& item) { return item.toInt(); });
    case TypeKind::FloatType:
      return typed_list<double>(items, [](const IValue& item) { return item.toDouble(); });
    case TypeKind::BoolType:
      return typed_list<bool>(items, [](const IValue& item) { return item.toBool(); });
    case TypeKind::StringType:
      return typed_list<std::string>(items, [](const IValue& item) { return item.toStringRef(); });
    case TypeKind::NumberType:
      return typed_list<at::Scalar>(items, [](const IValue& item) { return item.toScalar(); });
    case TypeKind::OptionalType: {
      const auto& inner = *element.expectRef<c10::OptionalType>().getElementType();
      if (inner.kind() == TypeKind::NumberType) {  // what the fused operators of oneDNN take
        return typed_list<std::optional<at::Scalar>>(items, [](const IValue& item) {
          return item.isNone() ? std::optional<at::Scalar>() : std::optional(item.toScalar());
        });
      }
      if (inner.kind() != TypeKind::TensorType) return std::nullopt;
      return typed_list<std::optional<at::Tensor>>(items, [](const IValue& item) {
        return item.isNone() ? std::optional<at::Tensor>() : std::optional(item.toTensor());
      });
    }
    default:
      return std::nullopt;
  }
}

bool holds_list(const Value& value) {
  return value.is_sequence() || (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple()));
}

std::optional<IValue> to_list(const Value& value, const c10::Type& element,
                              std::optional<std::int32_t> length, int& cost) {
  std::vector<IValue> items;
  if (holds_list(value)) {
    for (const Value& item : unpack(value)) {
      auto converted = convert_to(item, element, std::nullopt, cost);
      if (!converted) return std::nullopt;
      items.push_back(std::move(*converted));
    }
  } else if (length) {
    // `int[2] stride` accepts one int for both.
    int item_cost = kOneToList;
    auto converted = convert_to(value, element, std::nullopt, item_cost);
    if (!converted || converted->isTensor()) return std::nullopt;
    items.assign(static_cast<std::size_t>(*length), *converted);
    cost += item_cost;
  } else {
    return std::nullopt;
  }
  return make_list(element, items);
}

std::optional<IValue> convert_to(const Value& value, const c10::Type& type,
                                 std::optional<std::int32_t> list_length, int& cost) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
      if (value.is_none()) return IValue();
      return convert_to(value, *type.expectRef<c10::OptionalType>().getElementType(), list_length,
                        cost);
    case TypeKind::TensorType:
      return to_tensor(value, cost);
    case TypeKind::NumberType:
      if (value.is_number()) return value.leaf;
      return std::nullopt;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return to_float(value, cost);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return to_int(value, cost);
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return value.is_bool() ? std::optional(value.leaf) : std::nullopt;
    case TypeKind::StringType:
      return value.is_string() ? std::optional(value.leaf) : std::nullopt;
    case TypeKind::DeviceObjType:
      return to_device(value);
    case TypeKind::ScalarTypeType:
      return to_enumeration(value, Value::Kind::dtype);
    case TypeKind::LayoutType:
      return to_enumeration(value, Value::Kind::layout);
    case TypeKind::MemoryFormatType:
      return to_enumeration(value, Value::Kind::memory_format);
    case TypeKind::ListType:
      return to_list(value, *type.expectRef<c10::ListType>().getElementType(), list_length, cost);
    case TypeKind::GeneratorType:
      return value.is_leaf() && value.leaf.isGenerator() ? std::optional(value.leaf) : std::nullopt;
    case TypeKind::AnyType:
      return to_ivalue(value);
    default:
      return std::nullopt;
  }
}

}  // namespace

bool wants_tensor(const c10::Type& type) {
  if (type.kind() == TypeKind::TensorType) return true;
  return type.kind() == TypeKind::OptionalType &&
         type.expectRef<c10::OptionalType>().getElementType()->kind() == TypeKind::TensorType;
}

std::optional<IValue> convert(const Value& value, const c10::FunctionSchema& schema,
                              std::size_t position, int& cost) {
  const c10::Argument& argument = schema.arguments()[position];
  // `type()` hides ScalarType, Layout and MemoryFormat behind int; `real_type()` does not.
  const c10::Type& type = *argument.real_type();
  if (value.is_number() && wants_tensor(type) && !takes_numbers_for_tensors(schema.name())) {
    return std::nullopt;
  }
  // Python spells an empty list as a default None: `avg_pool2d(x, 2, None)`.
  if (value.is_none() && argument.default_value() && argument.default_value()->isIntList() &&
      argument.default_value()->toIntList().empty()) {
    return *argument.default_value();
  }
  return convert_to(value, type, argument.N(), cost);
}

}  // namespace assay::aten
