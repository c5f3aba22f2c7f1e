/// \file Keeps the random generator as it was around a trial run.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace assay::aten {

/// Puts the default CPU generator back into the state it had, when it dies.
class RestoreGeneratorScope {
 public:
  RestoreGeneratorScope();
  ~RestoreGeneratorScope();
  RestoreGeneratorScope(const RestoreGeneratorScope&) = delete;
  /// Leaves the generator as it is now.
  void release() { state_ = at::Tensor(); }
  RestoreGeneratorScope& operator=(const RestoreGeneratorScope&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace assay::aten
