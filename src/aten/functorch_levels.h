/// \file Leaves the levels of vmap, grad and jvp that a run entered and did not leave, because a
/// call between raised (functions/vmap.cpp, functions/grad_levels.cpp). Used by aten/runner.cpp.
#pragma once

#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <cstddef>

namespace assay::aten {

class FunctorchLevelsScope {
 public:
  FunctorchLevelsScope() = default;
  ~FunctorchLevelsScope() {
    while (at::functorch::getDynamicLayerStack().size() > depth_) {
      at::functorch::popDynamicLayerAndDeleteMetadata();
    }
    if (!is_dual_ && is_in_dual_level()) torch::autograd::ForwardADLevel::release_idx(0);
    at::functorch::setInplaceRequiresGradAllowed(allows_requires_grad_);
    c10::AutogradState::get_tls_state().set_fw_grad_mode(forward_mode_);
  }
  FunctorchLevelsScope(const FunctorchLevelsScope&) = delete;
  FunctorchLevelsScope& operator=(const FunctorchLevelsScope&) = delete;

 private:
  static bool is_in_dual_level() {  // there is one level at most
    return torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr;
  }

  std::size_t depth_ = at::functorch::getDynamicLayerStack().size();
  bool is_dual_ = is_in_dual_level();
  bool allows_requires_grad_ = at::functorch::getInplaceRequiresGradAllowed();
  bool forward_mode_ = c10::AutogradState::get_tls_state().get_fw_grad_mode();
};

}  // namespace assay::aten
