#include "aten/result_structure.h"

#include "assay/error.h"

namespace assay::aten {

ResultStructure::ResultStructure(const graph::Argument& output) : size_(0) {
  shape_ = shape_of(output);
}

ResultStructure::Shape ResultStructure::shape_of(const graph::Argument& argument) {
  Shape shape;
  if (!is_container(argument)) {
    ++size_;
    return shape;
  }
  shape.kind = Value::Kind::list;
  if (argument.get_if<graph::Tuple>() != nullptr) shape.kind = Value::Kind::tuple;
  if (argument.get_if<graph::Slice>() != nullptr) shape.kind = Value::Kind::slice;
  if (const auto* dict = argument.get_if<graph::Dict>()) {
    shape.kind = Value::Kind::dict;
    shape.keys = dict->keys;
  }
  for (const graph::Argument& item : argument.items()) shape.items.push_back(shape_of(item));
  return shape;
}

Value ResultStructure::fill(std::span<c10::IValue> leaves) const {
  internal_check(leaves.size() == size_, "a compiled graph returns one value per leaf");
  std::size_t next = 0;
  return fill(shape_, leaves, next);
}

Value ResultStructure::fill(const Shape& shape, std::span<c10::IValue> leaves, std::size_t& next) {
  if (shape.kind == Value::Kind::leaf) return unpack_value(std::move(leaves[next++]));
  Value made;
  made.kind = shape.kind;
  made.keys = shape.keys;
  made.items.reserve(shape.items.size());
  for (const Shape& item : shape.items) made.items.push_back(fill(item, leaves, next));
  return made;
}

}  // namespace assay::aten
