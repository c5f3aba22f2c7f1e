#include "aten/rng_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace assay::aten {

KeepGenerator::KeepGenerator() : generator_(at::detail::getDefaultCPUGenerator()) {
  const std::lock_guard lock(generator_.mutex());
  state_ = generator_.get_state();
}

KeepGenerator::~KeepGenerator() {
  const std::lock_guard lock(generator_.mutex());
  generator_.set_state(state_);
}

}  // namespace assay::aten
