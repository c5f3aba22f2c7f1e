/// \file Which tensors can be part of a traced program.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace assay::aten {

/// Throws `TraceError` unless `tensor` is an ordinary dense CPU tensor of real numbers. `what` says
/// which tensor it is: `input 2`.
void check_supported(const at::Tensor& tensor, const std::string& what);

}  // namespace assay::aten
