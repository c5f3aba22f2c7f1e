#include "compare/memory.h"

#include <ATen/core/Tensor.h>

#include <sstream>

namespace assay::compare {

namespace {

using at::Tensor;
using aten::Value;

struct PlacedTensor {
  std::string where;
  Tensor tensor;
};

void collect(const Value& value, const std::string& where, std::vector<PlacedTensor>& found) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.leaf.toTensor();
    if (tensor.defined()) found.push_back({where, tensor});
    return;
  }
  const bool is_list = value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple());
  const std::vector<Value> items = is_list ? aten::unpack(value) : value.items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string key =
        value.kind == Value::Kind::dict ? "'" + value.keys[i] + "'" : std::to_string(i);
    collect(items[i], where + "[" + key + "]", found);
  }
}

std::vector<PlacedTensor> tensors_of(const Value& value, const std::string& where) {
  std::vector<PlacedTensor> found;
  collect(value, where, found);
  return found;
}

bool has_promised_strides(const Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.numel() > 0 &&
         tensor.is_non_overlapping_and_dense();
}

bool has_same_strides(const Tensor& reference, const Tensor& result) {
  for (std::int64_t i = 0; i < reference.dim(); ++i) {
    if (reference.size(i) > 1 && reference.stride(i) != result.stride(i)) return false;
  }
  return true;
}

bool shares_memory(const Tensor& left, const Tensor& right) {
  const auto has_memory = [](const Tensor& tensor) {
    return tensor.has_storage() && tensor.storage().nbytes() > 0;
  };
  return has_memory(left) && has_memory(right) && left.is_alias_of(right);
}

Comparison difference(Comparison::Kind kind, const std::string& where, std::string message) {
  Comparison found;
  found.same = false;
  found.kind = kind;
  found.where = where;
  found.message = std::move(message);
  return found;
}

}  // namespace

Comparison same_strides(const Value& reference, const Value& result) {
  const auto eager = tensors_of(reference, "");
  const auto compiled = tensors_of(result, "");
  for (std::size_t i = 0; i < std::min(eager.size(), compiled.size()); ++i) {
    const Tensor& left = eager[i].tensor;
    const Tensor& right = compiled[i].tensor;
    const bool can_compare = has_promised_strides(left) && right.layout() == at::kStrided &&
                             left.sizes() == right.sizes();
    if (!can_compare || has_same_strides(left, right)) continue;
    std::ostringstream text;
    text << "eager's strides are " << left.strides() << ", the result's " << right.strides();
    return difference(Comparison::Kind::strides, eager[i].where, text.str());
  }
  return {};
}

Comparison same_aliasing(const Memory& reference, const Memory& result) {
  const auto eager = tensors_of(reference.output, "output");
  const auto compiled = tensors_of(result.output, "output");
  const auto eager_inputs = tensors_of(reference.inputs, "input");
  const auto inputs = tensors_of(result.inputs, "input");
  if (eager.size() != compiled.size() || eager_inputs.size() != inputs.size()) return {};
  for (std::size_t i = 0; i < eager.size(); ++i) {
    const auto compare = [&](const PlacedTensor& left, const PlacedTensor& right) -> Comparison {
      const bool by_eager = shares_memory(eager[i].tensor, left.tensor);
      if (by_eager == shares_memory(compiled[i].tensor, right.tensor)) return {};
      return difference(Comparison::Kind::aliasing, eager[i].where,
                        "it shares memory with " + left.where + " in " +
                            (by_eager ? "eager, but not in the compiled program"
                                      : "the compiled program, but not in eager"));
    };
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      if (Comparison found = compare(eager_inputs[j], inputs[j]); !found.same) return found;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (Comparison found = compare(eager[j], compiled[j]); !found.same) return found;
    }
  }
  return {};
}

}  // namespace assay::compare
