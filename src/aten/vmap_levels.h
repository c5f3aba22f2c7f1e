/// \file Leaves the vmap levels that a run entered and did not leave, because a call between raised
/// (functions/vmap.cpp). Used by aten/runner.cpp.
#pragma once

#include <ATen/functorch/DynamicLayer.h>

#include <cstddef>

namespace assay::aten {

class VmapLevelsScope {
 public:
  VmapLevelsScope() : depth_(at::functorch::getDynamicLayerStack().size()) {}
  ~VmapLevelsScope() {
    while (at::functorch::getDynamicLayerStack().size() > depth_) {
      at::functorch::popDynamicLayerAndDeleteMetadata();
    }
  }
  VmapLevelsScope(const VmapLevelsScope&) = delete;
  VmapLevelsScope& operator=(const VmapLevelsScope&) = delete;

 private:
  std::size_t depth_;
};

}  // namespace assay::aten
