#include "guards/guards.h"

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <bit>

namespace assay::guards {

namespace {

using aten::Value;

const at::Tensor* tensor_in(const c10::IValue& value) {
  if (!value.isTensor()) return nullptr;
  const at::Tensor& tensor = value.toTensor();
  return tensor.defined() ? &tensor : nullptr;
}

const c10::StorageImpl* storage_of(const c10::IValue& value) {
  const at::Tensor* tensor = tensor_in(value);
  return tensor != nullptr && tensor->has_storage() ? tensor->storage().unsafeGetStorageImpl()
                                                    : nullptr;
}

bool same_constant(const Value& left, const Value& right) {
  if (left.kind != right.kind || left.keys != right.keys ||
      left.items.size() != right.items.size()) {
    return false;
  }
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    if (!same_constant(left.items[i], right.items[i])) return false;
  }
  if (left.leaf.tagKind() != right.leaf.tagKind()) return false;
  // NaN is the same constant as NaN; 0.0 and -0.0 are different ones.
  if (left.leaf.isDouble()) {
    return std::bit_cast<std::uint64_t>(left.leaf.toDouble()) ==
           std::bit_cast<std::uint64_t>(right.leaf.toDouble());
  }
  if (left.leaf.isTensor()) {
    return !left.leaf.toTensor().defined() && !right.leaf.toTensor().defined();
  }
  return left.leaf == right.leaf;
}

std::string shape_text(c10::IntArrayRef sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(sizes[i]);
  }
  return text + "]";
}

// A call of memcmp costs more than to compare a few numbers.
inline bool same_numbers(c10::IntArrayRef now, const std::vector<std::int64_t>& before) {
  if (now.size() != before.size()) return false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (now[i] != before[i]) return false;
  }
  return true;
}

// Above this many tensors their storages are sorted instead of compared with one another.
constexpr std::size_t kFewTensors = 8;

}  // namespace

TensorGuard::TensorGuard(const at::Tensor& tensor)
    : keys_(tensor.key_set()),
      dtype_(tensor.scalar_type()),
      device_(tensor.device()),
      requires_grad_(tensor.requires_grad()),
      is_leaf_(tensor.is_leaf()),
      is_nested_(tensor.is_nested()),
      has_strides_(!is_nested_ && tensor.layout() == c10::kStrided) {
  if (!is_nested_) sizes_ = tensor.sizes().vec();
  if (has_strides_) strides_ = tensor.strides().vec();
}

inline bool TensorGuard::same_history(const at::Tensor& tensor) const {
  const c10::AutogradMetaInterface* any = tensor.unsafeGetTensorImpl()->autograd_meta();
  if (any == nullptr) return is_leaf_ && !requires_grad_;
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(any);
  // A view's history may have to be made first.
  if (meta->is_view_) {
    return tensor.requires_grad() == requires_grad_ && tensor.is_leaf() == is_leaf_;
  }
  const bool is_leaf = meta->grad_fn_ == nullptr;
  return is_leaf == is_leaf_ && (meta->requires_grad_ || !is_leaf) == requires_grad_;
}

inline bool TensorGuard::same_kind(const at::Tensor& tensor) const {
  return tensor.scalar_type() == dtype_ && tensor.device() == device_ && same_history(tensor);
}

// Inlined where many tensors are checked one after the other.
inline bool TensorGuard::holds_here(const at::Tensor& tensor) const {
  if (tensor.key_set() != keys_) return false;  // also tells the layout
  if (is_nested_) return true;
  if (open_ != 0) return same_guarded_sizes(tensor) && same_kind(tensor);
  return same_numbers(tensor.sizes(), sizes_) &&
         (!has_strides_ || same_numbers(tensor.strides(), strides_)) && same_kind(tensor);
}

bool TensorGuard::holds(const at::Tensor& tensor) const { return holds_here(tensor); }

bool all_hold(std::span<const GuardedTensor> tensors) {
  for (const GuardedTensor& guarded : tensors) {
    if (!guarded.guard->holds_here(*guarded.tensor)) return false;
  }
  return true;
}

bool TensorGuard::same_guarded_sizes(const at::Tensor& tensor) const {
  return tensor.dim() == static_cast<std::int64_t>(sizes_.size()) &&
         (other_dimensions(tensor) & ~open_) == 0;
}

std::uint64_t TensorGuard::other_dimensions(const at::Tensor& tensor) const {
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    if (tensor.sizes()[i] != sizes_[i]) found |= std::uint64_t{1} << i;
  }
  return found;
}

bool TensorGuard::has_other_sizes(const at::Tensor& tensor) const {
  return tensor.key_set() == keys_ && !is_nested_ && same_kind(tensor) &&
         tensor.dim() == static_cast<std::int64_t>(sizes_.size()) && tensor.sizes() != sizes_;
}

std::string TensorGuard::failure(const at::Tensor& tensor, const std::string& name) const {
  if (tensor.scalar_type() != dtype_) {
    return name + ": dtype " + c10::toString(dtype_) + " before, " +
           c10::toString(tensor.scalar_type()) + " now";
  }
  if (tensor.is_nested() || is_nested_) return name + " is a different kind of tensor";
  if (open_ != 0 ? !same_guarded_sizes(tensor) : tensor.sizes() != sizes_) {
    return name + ": size " + shape_text(sizes_) + " before, " + shape_text(tensor.sizes()) +
           " now";
  }
  if (tensor.requires_grad() != requires_grad_) return name + ": requires_grad changed";
  if (open_ == 0 && has_strides_ && tensor.layout() == c10::kStrided &&
      tensor.strides() != strides_) {
    return name + ": strides " + shape_text(strides_) + " before, " + shape_text(tensor.strides()) +
           " now";
  }
  return name + " is a different kind of tensor";
}

InputGuard::InputGuard(const c10::IValue& input) {
  if (const at::Tensor* tensor = tensor_in(input)) {
    tensor_.emplace(*tensor);
  } else {
    constant_ = aten::unpack_value(input);
  }
}

bool InputGuard::holds(const c10::IValue& input) const {
  const at::Tensor* tensor = tensor_in(input);
  if (tensor_) return tensor != nullptr && tensor_->holds(*tensor);
  return tensor == nullptr && same_constant(constant_, aten::unpack_value(input));
}

Guards::Guards(std::span<const c10::IValue> inputs) : state_(GlobalState::current()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs_.emplace_back(inputs[i]);
    const c10::StorageImpl* storage = storage_of(inputs[i]);
    if (storage == nullptr) continue;
    const auto first = std::ranges::find_if(
        with_storage_, [&](std::size_t earlier) { return storage_of(inputs[earlier]) == storage; });
    sharing_.push_back(sharing_of(inputs, i, first == with_storage_.end() ? i : *first));
    with_storage_.push_back(i);
  }
}

bool Guards::same_properties(std::span<const c10::IValue> inputs) const {
  if (inputs.size() != inputs_.size()) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs_[i].holds(inputs[i])) return false;
  }
  return true;
}

Guards::Sharing Guards::sharing_of(std::span<const c10::IValue> inputs, std::size_t index,
                                   std::size_t first) {
  const at::Tensor& tensor = inputs[index].toTensor();
  const at::Tensor& other = inputs[first].toTensor();
  return {first, tensor.is_same(other), tensor.storage_offset() - other.storage_offset()};
}

// To be called when the properties are known to be the same: the same inputs have storages.
bool Guards::same_sharing(std::span<const c10::IValue> inputs) const {
  const std::size_t count = with_storage_.size();
  if (count < 2) return true;
  if (count <= kFewTensors) {
    for (std::size_t i = 0; i < count; ++i) {
      const c10::StorageImpl* storage = storage_of(inputs[with_storage_[i]]);
      std::size_t first = 0;
      while (storage_of(inputs[with_storage_[first]]) != storage) ++first;
      if (with_storage_[first] != sharing_[i].first) return false;
      if (first != i && sharing_of(inputs, with_storage_[i], with_storage_[first]) != sharing_[i]) {
        return false;
      }
    }
    return true;
  }
  // Sorted by storage, then by place, those that share stand side by side, the first one first.
  c10::SmallVector<std::pair<const c10::StorageImpl*, std::size_t>, 64> sorted;
  for (std::size_t i = 0; i < count; ++i) {
    sorted.emplace_back(storage_of(inputs[with_storage_[i]]), i);
  }
  std::ranges::sort(sorted);
  std::size_t first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (sorted[i].first != sorted[first].first) first = i;
    const std::size_t index = sorted[i].second;
    if (sharing_of(inputs, with_storage_[index], with_storage_[sorted[first].second]) !=
        sharing_[index]) {
      return false;
    }
  }
  return true;
}

bool Guards::meet_other_sizes(std::span<const c10::IValue> inputs, const GlobalState& state) const {
  if (!(state == state_) || inputs.size() != inputs_.size()) return false;
  bool found = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const InputGuard& guard = inputs_[i];
    if (guard.holds(inputs[i])) continue;
    const at::Tensor* tensor = tensor_in(inputs[i]);
    if (guard.tensor()) {
      if (tensor == nullptr || !guard.tensor()->has_other_sizes(*tensor)) return false;
      found = true;
    } else if (!guard.constant().is_int() || !inputs[i].isInt()) {
      return false;
    }
  }
  return found;
}

std::string Guards::failure(std::span<const c10::IValue> inputs, const GlobalState& state) const {
  if (!(state == state_)) return state_.difference(state);
  if (inputs.size() != inputs_.size()) {
    return std::to_string(inputs_.size()) + " inputs before, " + std::to_string(inputs.size()) +
           " now";
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs_[i].holds(inputs[i])) continue;
    const std::string name = "input " + std::to_string(i);
    const at::Tensor* tensor = tensor_in(inputs[i]);
    if (!inputs_[i].tensor() || tensor == nullptr) return name + " is a different value";
    return inputs_[i].tensor()->failure(*tensor, name);
  }
  return same_sharing(inputs) ? "" : "inputs alias each other differently";
}

}  // namespace assay::guards
