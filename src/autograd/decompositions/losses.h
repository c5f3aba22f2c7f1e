/// \file What the tables of losses share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace assay::autograd {

/// The mean, the sum or all of `loss`; `reduction` is one of `at::Reduction`.
at::Tensor reduce_loss(const at::Tensor& loss, std::int64_t reduction);

}  // namespace assay::autograd
