/// \file Gradients off for a while, and modes that a graph enters left behind at the end.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

namespace assay::compare {

/// Gradient mode is off until it dies; then that and autocast are as they were, even if only the
/// first half of a graph ran, which entered autocast and did not come to leave it.
class RestoreModesScope {
 public:
  RestoreModesScope();
  ~RestoreModesScope();
  RestoreModesScope(const RestoreModesScope&) = delete;
  RestoreModesScope& operator=(const RestoreModesScope&) = delete;

 private:
  c10::AutoGradMode no_grad_{false};
  bool enabled_;
  at::ScalarType dtype_;
  bool cache_;
  int nesting_;
};

}  // namespace assay::compare
