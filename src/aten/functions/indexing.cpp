// `x[...]` and `x[...] = v`, on tensors, sequences and dicts.
#include <ATen/TensorIndexing.h>
#include <ATen/functorch/BatchedTensorImpl.h>

#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/python_numbers.h"
#include "aten/functions/tables.h"
#include "aten/functions/tensor_from_data.h"

namespace assay::aten {

namespace {

using at::indexing::TensorIndex;

// A slice's bound, or an index: an int, a bool, or a tensor that holds one number.
std::optional<std::int64_t> bound(const Value& value) {
  if (value.is_none()) return std::nullopt;
  if (value.is_int() || value.is_bool()) return number_to_integer(value);
  if (value.is_tensor() && !value.leaf.toTensor().is_floating_point()) {
    return value.leaf.toTensor().item<std::int64_t>();
  }
  throw UserError("slice indices must be integers or None, not " + type_name(value));
}

at::indexing::Slice slice_of(const Value& value) {
  const auto symbolic = [](std::optional<std::int64_t> number) {
    return number ? std::optional<c10::SymInt>(*number) : std::nullopt;
  };
  return at::indexing::Slice(symbolic(bound(value.items[0])), symbolic(bound(value.items[1])),
                             symbolic(bound(value.items[2])));
}

// A list of numbers in an index is a tensor of positions, or a mask if all are bools.
at::Tensor index_from_list(const Value& list, const at::Tensor& self) {
  const at::ScalarType inferred = infer_dtype(list);
  const bool is_mask = inferred == at::kBool;
  // Python counts a mask in a list as one dimension however deep it is.
  if (is_mask && holds_sequence(unpack(list).front())) {
    throw NeedsPythonError("a nested list of bools as an index needs a Python process",
                           "make the mask a tensor");
  }
  at::Tensor index = tensor_from_data(list, is_mask ? at::kBool : at::kLong);
  return self.device().is_cpu() ? index : index.to(self.device());
}

TensorIndex tensor_index(const Value& value, const at::Tensor& self) {
  if (value.kind == Value::Kind::slice) return slice_of(value);
  if (value.kind == Value::Kind::ellipsis) return at::indexing::Ellipsis;
  if (value.is_none()) return at::indexing::None;
  if (value.is_bool()) return value.leaf.toBool();
  if (value.is_int()) return TensorIndex(value.leaf.toInt());
  if (value.is_tensor()) return value.leaf.toTensor();
  if (holds_sequence(value)) return index_from_list(value, self);
  throw UserError(
      "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
      "indices (got " +
      type_name(value) + ")");
}

// NumPy's old habit, which PyTorch keeps: a short list that holds anything but numbers stands for
// a tuple.
bool means_tuple(const Value& index) {
  if (index.kind == Value::Kind::tuple) return true;
  if (!holds_sequence(index)) return false;
  constexpr std::size_t kShort = 32;
  const std::vector<Value> items = unpack(index);
  if (items.size() >= kShort) return false;
  for (const Value& item : items) {
    if (!item.is_number()) return true;
  }
  return false;
}

std::vector<TensorIndex> tensor_indices(const Value& index, const at::Tensor& self) {
  std::vector<TensorIndex> indices;
  if (means_tuple(index)) {
    for (const Value& item : unpack(index)) indices.push_back(tensor_index(item, self));
  } else {
    indices.push_back(tensor_index(index, self));
  }
  return indices;
}

// Inside vmap an index may be different for each element; then it cannot be read as a number.
std::optional<std::vector<at::Tensor>> indices_in_vmap(const Value& index) {
  std::vector<at::Tensor> indices;
  bool is_batched = false;
  for (const Value& item : means_tuple(index) ? unpack(index) : std::vector<Value>{index}) {
    if (!item.is_tensor()) return std::nullopt;
    indices.push_back(item.leaf.toTensor());
    is_batched |= at::functorch::isBatchedTensor(indices.back());
  }
  if (!is_batched) return std::nullopt;
  return indices;
}

std::size_t position(const Value& index, std::size_t size, const char* kind) {
  const std::optional<std::int64_t> given = bound(index);
  if (!given) throw UserError(std::string(kind) + " indices must be integers or slices, not None");
  const auto length = static_cast<std::int64_t>(size);
  const std::int64_t wrapped = *given < 0 ? *given + length : *given;
  if (wrapped < 0 || wrapped >= length) {
    throw UserError(std::string(kind) + " index out of range: " + std::to_string(*given) +
                    ", length " + std::to_string(size));
  }
  return static_cast<std::size_t>(wrapped);
}

Value slice_sequence(const Value& sequence, const Value& slice) {
  const std::vector<Value> items = unpack(sequence);
  const auto length = static_cast<std::int64_t>(items.size());
  const std::int64_t step = bound(slice.items[2]).value_or(1);
  if (step == 0) throw UserError("slice step cannot be zero");
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? length : length - 1;
  const auto clamped = [&](const Value& value, std::int64_t fallback) {
    const auto given = bound(value);
    if (!given) return fallback;
    return std::clamp(*given < 0 ? *given + length : *given, lowest, highest);
  };
  const std::int64_t start = clamped(slice.items[0], step > 0 ? lowest : highest);
  const std::int64_t stop = clamped(slice.items[1], step > 0 ? highest : lowest);
  std::vector<Value> taken;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    taken.push_back(items[static_cast<std::size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;  // a step beyond any list
  }
  const auto kind = sequence.kind == Value::Kind::list ? Value::Kind::list : Value::Kind::tuple;
  return Value::sequence(kind, std::move(taken));
}

Value dict_item(const Value& dict, const Value& key) {
  if (!key.is_string()) throw UserError("dict keys must be strings, not " + type_name(key));
  for (std::size_t i = 0; i < dict.keys.size(); ++i) {
    if (dict.keys[i] == key.leaf.toStringRef()) return dict.items[i];
  }
  throw UserError("key not found: '" + key.leaf.toStringRef() + "'");
}

Value get_item(const BoundArguments& arguments) {
  const Value& object = arguments["a"];
  const Value& index = arguments["b"];
  if (object.is_tensor()) {
    const at::Tensor& self = object.leaf.toTensor();
    if (const auto indices = indices_in_vmap(index)) {
      return run("aten::index", {object, Operand(*indices)});
    }
    return c10::IValue(at::indexing::get_item(self, tensor_indices(index, self)));
  }
  if (object.kind == Value::Kind::dict) return dict_item(object, index);
  if (!holds_sequence(object)) {
    throw UserError("'" + type_name(object) + "' object is not subscriptable");
  }
  if (index.kind == Value::Kind::slice) return slice_sequence(object, index);
  const char* kind = object.kind == Value::Kind::list ? "list" : "tuple";
  if (object.is_sequence()) return object.items[position(index, object.items.size(), kind)];
  std::vector<Value> items = unpack(object);
  return std::move(items[position(index, items.size(), kind)]);
}

at::Tensor assigned_value(const Value& value, const at::Tensor& self) {
  if (value.is_tensor()) return value.leaf.toTensor();
  if (!value.is_number()) throw UserError("can't assign a " + type_name(value) + " to a Tensor");
  return at::indexing::scalarToTensor(value.leaf.toScalar(), self.options(), self.device());
}

Value set_item(const BoundArguments& arguments) {
  const Value& object = arguments["a"];
  if (!object.is_tensor()) {
    // Other names may hold the same list or dict; values here are never shared.
    throw NeedsPythonError("assigning to an item of a " + type_name(object) +
                           " needs a Python process");
  }
  const at::Tensor& self = object.leaf.toTensor();
  at::indexing::set_item(self, tensor_indices(arguments["b"], self),
                         assigned_value(arguments["c"], self));
  // Python's returns None, but FX writes `x[i] = v;  setitem = x`.
  return object;
}

constexpr std::array kIndexingFunctions = std::to_array<TorchFunction>({
    {"operator.getitem", "a, b", get_item},
    {"operator.setitem", "a, b, c", set_item},
});

constexpr std::array kIndexingMethods = std::to_array<TorchFunction>({
    {"__getitem__", "a, b", get_item},
    {"__setitem__", "a, b, c", set_item},
});

}  // namespace

FunctionTable indexing_functions() { return kIndexingFunctions; }
FunctionTable indexing_methods() { return kIndexingMethods; }

}  // namespace assay::aten
