#include "aten/value.h"

#include "assay/error.h"

namespace assay::aten {

namespace {

// What an IValue cannot hold: a slice, a dtype, a list of such.
struct PackedValue : torch::CustomClassHolder {
  explicit PackedValue(Value packed) : value(std::move(packed)) {}
  Value value;
};

}  // namespace

c10::IValue pack_value(Value value) {
  if (value.is_leaf()) return std::move(value.leaf);
  return c10::IValue::make_capsule(c10::make_intrusive<PackedValue>(std::move(value)));
}

Value unpack_value(c10::IValue packed) {
  if (!packed.isCapsule()) return Value(std::move(packed));
  const auto capsule = packed.toCapsule();
  const auto* holder = dynamic_cast<const PackedValue*>(capsule.get());
  internal_check(holder != nullptr, "a capsule among values holds a value");
  return holder->value;
}

std::vector<Value> unpack_values(std::span<const c10::IValue> packed) {
  std::vector<Value> values;
  values.reserve(packed.size());
  for (const c10::IValue& value : packed) values.push_back(unpack_value(value));
  return values;
}

Value Value::sequence(Kind kind, std::vector<Value> items) {
  Value made;
  made.kind = kind;
  made.items = std::move(items);
  return made;
}

std::vector<Value> unpack(const Value& value) {
  if (value.is_sequence()) return value.items;
  std::vector<Value> items;
  const c10::IValue& leaf = value.leaf;
  if (value.is_leaf() && leaf.isTensorList()) {
    for (const at::Tensor& tensor : leaf.toTensorVector()) items.emplace_back(c10::IValue(tensor));
  } else if (value.is_leaf() && leaf.isList()) {
    for (const c10::IValue& item : leaf.toListRef()) items.emplace_back(item);
  } else if (value.is_leaf() && leaf.isTuple()) {
    for (const c10::IValue& item : leaf.toTupleRef().elements()) items.emplace_back(item);
  } else {
    throw UserError("expected a list or tuple, found " + type_name(value));
  }
  return items;
}

c10::IValue to_ivalue(const Value& value) {
  switch (value.kind) {
    case Value::Kind::list:
    case Value::Kind::tuple:
    case Value::Kind::slice: {
      std::vector<c10::IValue> items;
      items.reserve(value.items.size());
      for (const Value& item : value.items) items.push_back(to_ivalue(item));
      return c10::ivalue::Tuple::create(std::move(items));
    }
    case Value::Kind::dict: {
      c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        dict.insert(value.keys[i], to_ivalue(value.items[i]));
      }
      return dict;
    }
    case Value::Kind::ellipsis:
    case Value::Kind::subgraph:
      throw UserError("a graph cannot return " + type_name(value));
    default:
      return value.leaf;
  }
}

std::string type_name(const Value& value) {
  switch (value.kind) {
    case Value::Kind::dtype:
      return "torch.dtype";
    case Value::Kind::layout:
      return "torch.layout";
    case Value::Kind::memory_format:
      return "torch.memory_format";
    case Value::Kind::ellipsis:
      return "Ellipsis";
    case Value::Kind::slice:
      return "slice";
    case Value::Kind::dict:
      return "dict";
    case Value::Kind::name:
      return value.leaf.toStringRef();
    case Value::Kind::subgraph:
      return "a subgraph";
    case Value::Kind::list:
    case Value::Kind::tuple: {
      std::string text = value.kind == Value::Kind::list ? "list" : "tuple";
      return value.items.empty() ? text : text + " of " + type_name(value.items.front());
    }
    case Value::Kind::leaf:
      break;
  }
  const c10::IValue& leaf = value.leaf;
  if (leaf.isNone()) return "None";
  if (leaf.isTensor()) return "Tensor";
  if (leaf.isBool()) return "bool";
  if (leaf.isInt()) return "int";
  if (leaf.isDouble()) return "float";
  if (leaf.isComplexDouble()) return "complex";
  if (leaf.isString()) return "str";
  if (leaf.isDevice()) return "torch.device";
  if (leaf.isList()) return "list";
  if (leaf.isTuple()) return "tuple";
  return leaf.tagKind();
}

}  // namespace assay::aten
