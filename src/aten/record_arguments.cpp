#include "aten/record_arguments.h"

#include <ATen/core/Tensor.h>

#include <complex>

#include "assay/error.h"

namespace assay::aten {

namespace {

using graph::Argument;

// An integer means a dtype, a layout or a memory format where the schema says so.
Argument from_integer(std::int64_t value, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::ScalarTypeType:
      return static_cast<c10::ScalarType>(value);
    case c10::TypeKind::LayoutType:
      return static_cast<c10::Layout>(value);
    case c10::TypeKind::MemoryFormatType:
      return static_cast<c10::MemoryFormat>(value);
    default:
      return value;
  }
}

const c10::Type& element_type(const c10::Type& type) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    return element_type(*optional->getElementType());
  }
  const auto* list = type.castRaw<c10::ListType>();
  return list == nullptr ? type : *list->getElementType();
}

const c10::Type& without_optional(const c10::Type& type) {
  const auto* optional = type.castRaw<c10::OptionalType>();
  return optional == nullptr ? type : *optional->getElementType();
}

Argument to_argument(const c10::IValue& value, const c10::Type& declared,
                     const TensorArgument& tensor) {
  const c10::Type& type = without_optional(declared);
  if (value.isNone()) return {};
  if (value.isTensor()) return value.toTensor().defined() ? tensor(value.toTensor()) : Argument();
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return from_integer(value.toInt(), type);
  if (value.isDouble()) return value.toDouble();
  if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    return std::complex<double>(number.real(), number.imag());
  }
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return value.toDevice();
  if (value.isList()) {
    const c10::Type& element = element_type(type);
    graph::List list;
    for (const c10::IValue& item : value.toListRef()) {
      list.items.push_back(to_argument(item, element, tensor));
    }
    return list;
  }
  throw TraceError("an argument of type " + value.tagKind() + " cannot be part of a graph");
}

// Tensors have no defaults, and comparing them would run an operator.
bool is_default(const c10::Argument& argument, const c10::IValue& value) {
  if (!argument.default_value() || value.isTensor()) return false;
  const c10::IValue& usual = *argument.default_value();
  if (value.isNone() || usual.isNone()) return value.isNone() && usual.isNone();
  if (value.isTensorList() || value.isOptionalTensorList()) return false;
  if (value.tagKind() != usual.tagKind()) return false;
  return value == usual;
}

}  // namespace

std::optional<graph::Argument> wrapped_number(const at::Tensor& tensor) {
  if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) return std::nullopt;
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Double:
      return *tensor.const_data_ptr<double>();
    case c10::ScalarType::Long:
      return *tensor.const_data_ptr<std::int64_t>();
    case c10::ScalarType::Bool:
      return *tensor.const_data_ptr<bool>();
    default:
      return std::nullopt;
  }
}

RecordedArguments record_arguments(const c10::FunctionSchema& schema,
                                   const std::vector<c10::IValue>& stack,
                                   const TensorArgument& tensor) {
  RecordedArguments made;
  const auto& declared = schema.arguments();
  internal_check(stack.size() == declared.size(), "a stack holds one value per argument");
  std::size_t positional = 0;  // up to the last one that is not its default
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (!declared[i].kwarg_only() && !is_default(declared[i], stack[i])) positional = i + 1;
  }
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const bool is_keyword = declared[i].kwarg_only();
    if (is_keyword ? is_default(declared[i], stack[i]) : i >= positional) continue;
    Argument value = to_argument(stack[i], *declared[i].real_type(), tensor);
    if (is_keyword) {
      made.kwargs.push_back({declared[i].name(), std::move(value)});
    } else {
      made.args.push_back(std::move(value));
    }
  }
  return made;
}

}  // namespace assay::aten
