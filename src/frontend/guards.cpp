#include "frontend/guards.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <bit>

#include "graph/dtype_names.h"

namespace assay::frontend {

namespace {

using aten::Value;

const at::Tensor* tensor_in(const Value& value) {
  if (!value.is_tensor()) return nullptr;
  const at::Tensor& tensor = value.leaf.toTensor();
  return tensor.defined() ? &tensor : nullptr;
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
  if (left.leaf.isTensor())
    return !left.leaf.toTensor().defined() && !right.leaf.toTensor().defined();
  return left.leaf == right.leaf;
}

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(sizes[i]);
  }
  return text + "]";
}

}  // namespace

GlobalState GlobalState::current() {
  GlobalState state;
  state.grad_mode = c10::GradMode::is_enabled();
  state.inference_mode = c10::InferenceMode::is_enabled();
  state.deterministic = at::globalContext().deterministicAlgorithms();
  state.autocast = at::autocast::is_autocast_enabled(at::kCPU);
  state.autocast_dtype = at::autocast::get_autocast_dtype(at::kCPU);
  state.default_dtype = c10::get_default_dtype_as_scalartype();
  return state;
}

Guards::Guards(const std::vector<Value>& inputs)
    : state_(GlobalState::current()), sharing_(find_sharing(inputs)) {
  for (const Value& value : inputs) {
    Input input;
    if (const at::Tensor* tensor = tensor_in(value)) {
      input.is_tensor = true;
      input.dtype = tensor->scalar_type();
      input.device = tensor->device();
      input.keys = tensor->key_set();
      input.requires_grad = tensor->requires_grad();
      input.is_leaf = tensor->is_leaf();
      if (!tensor->is_nested()) input.sizes = tensor->sizes().vec();
      if (!tensor->is_nested() && tensor->layout() == c10::kStrided) {
        input.strides = tensor->strides().vec();
      }
    } else {
      input.constant = value;
    }
    inputs_.push_back(std::move(input));
  }
}

bool Guards::holds(const Input& expected, const Value& value) {
  const at::Tensor* tensor = tensor_in(value);
  if (!expected.is_tensor) return tensor == nullptr && same_constant(expected.constant, value);
  if (tensor == nullptr || tensor->key_set() != expected.keys) return false;
  if (tensor->is_nested()) return true;  // never part of a graph
  return tensor->scalar_type() == expected.dtype &&
         tensor->requires_grad() == expected.requires_grad &&
         tensor->is_leaf() == expected.is_leaf && tensor->sizes() == expected.sizes &&
         (tensor->layout() != c10::kStrided || tensor->strides() == expected.strides) &&
         tensor->device() == expected.device;
}

const Guards::Input* Guards::failed_input(const std::vector<Value>& inputs) const {
  static const Input wrong_count;
  if (inputs.size() != inputs_.size()) return &wrong_count;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!holds(inputs_[i], inputs[i])) return &inputs_[i];
  }
  return nullptr;
}

std::vector<Guards::Sharing> Guards::find_sharing(const std::vector<Value>& inputs) {
  // Sorted by storage, those that share stand side by side.
  c10::SmallVector<std::pair<const c10::StorageImpl*, std::size_t>, 16> storages;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor* tensor = tensor_in(inputs[i]);
    if (tensor != nullptr && tensor->has_storage()) {
      storages.emplace_back(tensor->storage().unsafeGetStorageImpl(), i);
    }
  }
  std::ranges::sort(storages);
  std::vector<Sharing> found;
  std::size_t first = 0;
  for (std::size_t i = 1; i < storages.size(); ++i) {
    if (storages[i].first != storages[first].first) {
      first = i;
      continue;
    }
    const at::Tensor& tensor = inputs[storages[i].second].leaf.toTensor();
    const at::Tensor& other = inputs[storages[first].second].leaf.toTensor();
    found.push_back({storages[i].second, storages[first].second, tensor.is_same(other),
                     tensor.storage_offset() - other.storage_offset()});
  }
  std::ranges::sort(found, {}, &Sharing::input);  // storages lie elsewhere in each call
  return found;
}

bool Guards::same_sharing(const std::vector<Value>& inputs) const {
  return find_sharing(inputs) == sharing_;
}

std::string Guards::failure(const std::vector<Value>& inputs, const GlobalState& state) const {
  if (!(state == state_)) {
    if (state.grad_mode != state_.grad_mode) return "grad mode changed";
    if (state.inference_mode != state_.inference_mode) return "inference mode changed";
    if (state.autocast != state_.autocast || state.autocast_dtype != state_.autocast_dtype) {
      return "autocast changed";
    }
    if (state.default_dtype != state_.default_dtype) return "the default dtype changed";
    return "the choice of deterministic algorithms changed";
  }
  if (inputs.size() != inputs_.size()) {
    return std::to_string(inputs_.size()) + " inputs before, " + std::to_string(inputs.size()) +
           " now";
  }
  const Input* failed = failed_input(inputs);
  if (failed == nullptr) {
    return same_sharing(inputs) ? std::string() : "inputs share memory in another way";
  }
  const auto index = static_cast<std::size_t>(failed - inputs_.data());
  const std::string name = "input " + std::to_string(index);
  const at::Tensor* tensor = tensor_in(inputs[index]);
  if (!failed->is_tensor || tensor == nullptr) return name + " is another value";
  if (tensor->scalar_type() != failed->dtype) {
    return name + ": dtype " + std::string(c10::toString(failed->dtype)) + " before, " +
           c10::toString(tensor->scalar_type()) + " now";
  }
  if (tensor->sizes() != failed->sizes) {
    return name + ": size " + shape_text(failed->sizes) + " before, " +
           shape_text(tensor->sizes().vec()) + " now";
  }
  if (tensor->requires_grad() != failed->requires_grad) return name + ": requires_grad changed";
  if (tensor->layout() == c10::kStrided && tensor->strides() != failed->strides) {
    return name + ": strides " + shape_text(failed->strides) + " before, " +
           shape_text(tensor->strides().vec()) + " now";
  }
  return name + " is another kind of tensor";
}

}  // namespace assay::frontend
