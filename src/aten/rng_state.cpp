#include "aten/rng_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace assay::aten {

RestoreGeneratorScope::RestoreGeneratorScope() : generator_(at::detail::getDefaultCPUGenerator()) {
  const std::lock_guard lock(generator_.mutex());
  state_ = generator_.get_state();
}

RestoreGeneratorScope::~RestoreGeneratorScope() {
  if (!state_.defined()) return;
  const std::lock_guard lock(generator_.mutex());
  generator_.set_state(state_);
}

}  // namespace assay::aten
