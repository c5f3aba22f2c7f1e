#include "kernels/lowerings/call.h"

#include <c10/core/DefaultDtype.h>

#include "assay/error.h"

namespace assay::kernels {

using c10::ScalarType;
using graph::Argument;

namespace {

std::optional<c10::Scalar> scalar_of(const Argument& argument) {
  if (const auto* flag = argument.get_if<bool>()) return c10::Scalar(*flag);
  if (const auto* integer = argument.get_if<std::int64_t>()) return c10::Scalar(*integer);
  if (const auto* number = argument.get_if<double>()) return c10::Scalar(*number);
  if (const auto* number = argument.get_if<std::complex<double>>()) {
    return c10::Scalar(c10::complex<double>(number->real(), number->imag()));
  }
  if (const auto* dtype = argument.get_if<ScalarType>()) {
    return c10::Scalar(static_cast<std::int64_t>(*dtype));
  }
  return std::nullopt;
}

std::optional<c10::Scalar> scalar_of(const c10::IValue& value) {
  if (value.isBool()) return c10::Scalar(value.toBool());
  if (value.isScalar()) return value.toScalar();
  return std::nullopt;
}

}  // namespace

Call::Call(const graph::Node& node, const c10::FunctionSchema* schema, const LoweredNodes& nodes,
           LoopProgram& program)
    : node_(node), schema_(schema), nodes_(nodes), program_(program) {
  const auto add = [this](const graph::ValueMeta& meta) {
    const graph::TensorMeta* tensor = meta.tensor();
    if (tensor == nullptr) {
      layouts_.emplace_back();
      return;
    }
    auto layout = layout_of(*tensor);
    layouts_.push_back(
        ResultLayout{tensor->dtype, std::move(layout->sizes), std::move(layout->strides)});
  };
  const graph::ValueMeta& meta = node.meta.value;
  if (const auto* items = std::get_if<std::vector<graph::ValueMeta>>(&meta.value)) {
    for (const graph::ValueMeta& item : *items) add(item);
  } else {
    add(meta);
  }
  results_.resize(layouts_.size());
}

const Argument* Call::argument(std::size_t position) const {
  if (position < node_.args().size()) return &node_.args()[position];
  if (schema_ == nullptr) return nullptr;
  const std::string& name = schema_->arguments()[position].name();
  for (const graph::NamedArgument& keyword : node_.kwargs()) {
    if (keyword.name == name) return &keyword.value;
  }
  return nullptr;
}

const c10::IValue& Call::default_value(std::size_t position) const {
  static const c10::IValue none;
  if (schema_ == nullptr) return none;
  const auto& value = schema_->arguments()[position].default_value();
  return value ? *value : none;
}

bool Call::is_none(std::size_t position) const {
  const Argument* found = argument(position);
  return found != nullptr ? found->is_none() : default_value(position).isNone();
}

std::optional<TensorRef> Call::tensor(std::size_t position) const {
  const Argument* found = argument(position);
  if (found == nullptr || found->node() == nullptr) return std::nullopt;
  return nodes_.at(found->node()).tensor;
}

TensorRef Call::operand(std::size_t position) const {
  auto found = tensor(position);
  if (!found) {
    throw InternalError(node_.name() + ": argument " + std::to_string(position) +
                        " is not a tensor");
  }
  return *std::move(found);
}

std::vector<std::optional<TensorRef>> Call::tensors(std::size_t position) const {
  std::vector<std::optional<TensorRef>> found;
  const Argument* list = argument(position);
  if (list == nullptr) return found;
  if (list->node() != nullptr) return nodes_.at(list->node()).items;
  for (const Argument& item : list->items()) {
    found.push_back(item.node() == nullptr ? std::nullopt : nodes_.at(item.node()).tensor);
  }
  return found;
}

c10::Scalar Call::number(std::size_t position) const {
  auto found = optional_number(position);
  if (!found) {
    throw InternalError(node_.name() + ": argument " + std::to_string(position) +
                        " is not a number");
  }
  return *std::move(found);
}

std::optional<c10::Scalar> Call::optional_number(std::size_t position) const {
  const Argument* found = argument(position);
  return found != nullptr ? scalar_of(*found) : scalar_of(default_value(position));
}

Sizes Call::integers(std::size_t position) const {
  Sizes found;
  if (const Argument* list = argument(position)) {
    if (const auto lone = scalar_of(*list)) return {lone->to<std::int64_t>()};
    for (const Argument& item : list->items()) {
      found.push_back(scalar_of(item)->to<std::int64_t>());
    }
  } else if (const c10::IValue& value = default_value(position); value.isIntList()) {
    for (const std::int64_t item : value.toIntVector()) found.push_back(item);
  }
  return found;
}

std::vector<double> Call::floats(std::size_t position) const {
  std::vector<double> found;
  if (const Argument* list = argument(position)) {
    for (const Argument& item : list->items()) found.push_back(scalar_of(item)->toDouble());
  }
  return found;
}

std::vector<bool> Call::flags(std::size_t position) const {
  std::vector<bool> found;
  for (const std::int64_t item : integers(position)) found.push_back(item != 0);
  return found;
}

std::string Call::text(std::size_t position) const {
  if (const Argument* found = argument(position)) {
    const auto* text = found->get_if<std::string>();
    return text == nullptr ? std::string() : *text;
  }
  const c10::IValue& value = default_value(position);
  return value.isString() ? value.toStringRef() : std::string();
}

TensorRef Call::result(std::size_t number) {
  std::optional<TensorRef>& made = results_[number];
  if (!made) {
    const ResultLayout& layout = *layouts_[number];
    Buffer buffer{.kind = Buffer::Kind::intermediate,
                  .name = node_.name(),
                  .dtype = layout.dtype,
                  .sizes = layout.sizes,
                  .strides = layout.strides,
                  .elements = extent(layout.sizes, layout.strides, 0).end};
    if (layouts_.size() > 1) buffer.name += "_" + std::to_string(number);
    made = TensorRef{static_cast<BufferId>(program_.buffers.size()), layout.dtype, layout.sizes,
                     layout.strides, 0};
    program_.buffers.push_back(std::move(buffer));
  }
  return *made;
}

TensorRef Call::temporary(ScalarType dtype, const Sizes& sizes) {
  TensorRef ref{static_cast<BufferId>(program_.buffers.size()), dtype, sizes,
                row_major_strides(sizes), 0};
  program_.buffers.push_back({.kind = Buffer::Kind::intermediate,
                              .name = "buf" + std::to_string(ref.buffer),
                              .dtype = dtype,
                              .sizes = ref.sizes,
                              .strides = ref.strides,
                              .elements = element_count(sizes)});
  return ref;
}

Body& Call::kernel(Sizes outer) {
  const std::size_t number = program_.steps.size() + bodies_.size();
  return bodies_.emplace_back(
      std::string(node_.target().base_name()) + "_" + std::to_string(number), std::move(outer),
      node_);
}

Value Call::value(Body& body, std::size_t position, ScalarType dtype) const {
  if (const auto ref = tensor(position)) return load_as(body, *ref, dtype);
  return body.constant(number(position), compute_dtype(dtype));
}

Value Call::rounded_value(Body& body, std::size_t position, ScalarType dtype) const {
  if (tensor(position)) return value(body, position, dtype);
  return rounded_constant(body, number(position), dtype);
}

Value Call::factor(Body& body, std::size_t position, ScalarType dtype) const {
  const auto ref = tensor(position);
  if (ref && element_count(ref->sizes) == 1) return load_as(body, *ref, compute_dtype(dtype));
  return value(body, position, dtype);
}

Lowered Call::finish() {
  for (Body& body : bodies_) {
    Kernel kernel = std::move(body).finish();
    // Nothing to compute: results without elements need no kernel.
    if (element_count(kernel.outer) != 0) program_.steps.emplace_back(std::move(kernel));
  }
  Lowered lowered;
  if (std::holds_alternative<std::vector<graph::ValueMeta>>(node_.meta.value.value)) {
    lowered.items = std::move(results_);
  } else {
    lowered.tensor = std::move(results_[0]);
  }
  return lowered;
}

Value rounded_constant(Body& body, const c10::Scalar& number, ScalarType dtype) {
  return body.cast(body.constant(number, dtype), compute_dtype(dtype));
}

Value rounded(Value value, ScalarType dtype) { return cast(cast(value, dtype), value.dtype); }

Value load_as(Body& body, const TensorRef& ref, ScalarType dtype) {
  return load_as(body, ref, body.index_of(ref), dtype);
}

Value load_as(Body& body, const TensorRef& ref, const Index& index, ScalarType dtype) {
  return body.cast(body.cast(body.load(ref, index), dtype), compute_dtype(dtype));
}

ScalarType promoted_dtype(const Call& call, std::initializer_list<std::size_t> positions) {
  // Undefined stands for "none of this category".
  ScalarType with_dimensions = ScalarType::Undefined;
  ScalarType without = ScalarType::Undefined;
  ScalarType numbers = ScalarType::Undefined;
  const auto promote = [](ScalarType left, ScalarType right) {
    if (left == ScalarType::Undefined) return right;
    if (right == ScalarType::Undefined) return left;
    return c10::promoteTypes(left, right);
  };
  for (const std::size_t position : positions) {
    if (const auto ref = call.tensor(position)) {
      ScalarType& category = ref->sizes.empty() ? without : with_dimensions;
      category = promote(category, ref->dtype);
    } else {
      const c10::Scalar number = call.number(position);
      const ScalarType dtype =
          number.isFloatingPoint() ? c10::get_default_dtype_as_scalartype() : number.type();
      numbers = promote(numbers, dtype);
    }
  }
  // A lower category only matters if it is of a higher kind (bool, integer, floating point).
  const auto combine = [&](ScalarType higher, ScalarType lower) {
    if (higher == ScalarType::Undefined) return lower;
    if (c10::isFloatingType(higher)) return higher;
    if (higher == ScalarType::Bool || c10::isFloatingType(lower)) return promote(higher, lower);
    return higher;
  };
  return combine(with_dimensions, combine(without, numbers));
}

}  // namespace assay::kernels
