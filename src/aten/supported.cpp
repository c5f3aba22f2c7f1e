#include "aten/supported.h"

#include <c10/core/DispatchKeySet.h>

#include "assay/error.h"

namespace assay::aten {

namespace {

const char* reason(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  if (tensor.layout() != c10::kStrided) return "a sparse tensor, or another one without strides";
  if (tensor.is_nested()) return "a nested tensor";
  if (tensor.is_quantized()) return "a quantized tensor";
  if (tensor.is_complex()) return "a complex tensor";
  if (tensor.is_meta()) return "a meta tensor, which has no values";
  if (!tensor.is_cpu()) return "not on the CPU";
  const c10::DispatchKeySet keys = tensor.key_set();
  if (keys.has(c10::DispatchKey::Python)) return "a tensor subclass written in Python";
  if (keys.has(c10::DispatchKey::Functionalize) ||
      keys.has(c10::DispatchKey::FuncTorchGradWrapper) ||
      keys.has(c10::DispatchKey::FuncTorchBatched)) {
    return "a tensor inside a torch.func transform";
  }
  if (tensor.is_neg() || tensor.is_conj() || tensor._is_zerotensor()) {
    return "a tensor whose values are not materialized (a lazy negative, conjugate or zero)";
  }
  if (tensor._fw_grad(/*level=*/0).defined()) return "a dual tensor of forward-mode autograd";
  return nullptr;
}

}  // namespace

void check_supported(const at::Tensor& tensor, const std::string& what) {
  if (const char* why = reason(tensor)) {
    throw TraceError(what + " is " + why + ", which compiled programs do not support",
                     "convert it first, or enable fallback to run such calls eagerly");
  }
}

}  // namespace assay::aten
