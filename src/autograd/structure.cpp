#include "autograd/structure.h"

#include "assay/error.h"

namespace assay::autograd {

namespace {

using aten::Value;

// The mark of a tensor's place: a name no program can return.
Value place() { return {Value::Kind::name, "<tensor>"}; }
bool is_place(const Value& value) {
  return value.kind == Value::Kind::name && value.leaf.toStringRef() == "<tensor>";
}

bool is_container(const Value& value) {
  return value.is_sequence() || value.kind == Value::Kind::dict ||
         (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple()));
}

Value take_apart(const Value& value, std::vector<at::Tensor>& tensors) {
  if (value.is_tensor() && value.leaf.toTensor().defined()) {
    tensors.push_back(value.leaf.toTensor());
    return place();
  }
  if (!is_container(value)) return value;
  Value made;
  made.kind = value.kind == Value::Kind::leaf ? Value::Kind::list : value.kind;
  made.keys = value.keys;
  if (value.kind == Value::Kind::dict) {
    for (const Value& item : value.items) made.items.push_back(take_apart(item, tensors));
  } else {
    for (const Value& item : aten::unpack(value)) made.items.push_back(take_apart(item, tensors));
  }
  return made;
}

Value put_together(const Value& shape, std::span<c10::IValue> tensors, std::size_t& next) {
  if (is_place(shape)) return std::move(tensors[next++]);
  Value made;
  made.kind = shape.kind;
  made.leaf = shape.leaf;
  made.keys = shape.keys;
  made.items.reserve(shape.items.size());
  for (const Value& item : shape.items) made.items.push_back(put_together(item, tensors, next));
  return made;
}

}  // namespace

Structure::Structure(const Value& value, std::vector<at::Tensor>& tensors) {
  const std::size_t before = tensors.size();
  shape_ = take_apart(value, tensors);
  is_one_tensor_ = is_place(shape_);
  tensor_count_ = tensors.size() - before;
}

Value Structure::fill(std::span<c10::IValue> tensors) const {
  internal_check(tensors.size() == tensor_count_, "every tensor has its place in the structure");
  std::size_t next = 0;
  return put_together(shape_, tensors, next);
}

}  // namespace assay::autograd
