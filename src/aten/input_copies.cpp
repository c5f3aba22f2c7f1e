#include "aten/input_copies.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>

#include <cstring>
#include <unordered_map>

namespace assay::aten {

namespace {

using at::Tensor;

class Copier {
 public:
  Tensor copy(const Tensor& tensor) {
    const auto known = tensors_.find(tensor.unsafeGetTensorImpl());
    if (known != tensors_.end()) return known->second;
    Tensor made = on_copied_storage(tensor);
    if (tensor.requires_grad()) {
      made.set_requires_grad(true);
      if (!tensor.is_leaf()) made = with_history(made);
    }
    tensors_.emplace(tensor.unsafeGetTensorImpl(), made);
    return made;
  }

 private:
  Tensor on_copied_storage(const Tensor& tensor) {
    const bool is_plain = tensor.has_storage() && tensor.is_cpu() && !tensor.is_neg() &&
                          !tensor.is_conj() && !tensor.is_quantized();
    const c10::AutoGradMode no_grad(false);
    if (!is_plain) return tensor.detach().clone();
    Tensor made = at::empty({0}, tensor.options());
    made.set_(copy_storage(tensor.storage()), tensor.storage_offset(), tensor.sizes(),
              tensor.strides());
    return made;
  }

  c10::Storage copy_storage(const c10::Storage& storage) {
    auto& made = storages_[storage.unsafeGetStorageImpl()];
    if (!made) {
      made = c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), c10::GetCPUAllocator(),
                          /*resizable=*/true);
      if (storage.nbytes() != 0) {
        std::memcpy(made.mutable_data(), storage.data(), storage.nbytes());
      }
    }
    return made;
  }

  std::unordered_map<const c10::TensorImpl*, Tensor> tensors_;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> storages_;
};

}  // namespace

at::Tensor with_history(const at::Tensor& leaf) {
  if (!leaf.requires_grad()) return leaf;
  const c10::AutoGradMode grad(true);
  return at::_unsafe_view(leaf, leaf.sizes());  // is not a view to autograd
}

std::vector<Value> copy_inputs(const std::vector<Value>& inputs) {
  Copier copier;
  std::vector<Value> copies = inputs;
  for (Value& value : copies) {
    if (value.is_tensor() && value.leaf.toTensor().defined()) {
      value = c10::IValue(copier.copy(value.leaf.toTensor()));
    }
  }
  return copies;
}

}  // namespace assay::aten
