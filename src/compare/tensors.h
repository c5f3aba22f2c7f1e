/// \file The comparison of two tensors; internal to compare/same.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include "compare/same.h"

namespace assay::compare {

/// `fp64_reference` is undefined if there is none. Fills in everything but `where`.
Comparison same_tensors(const at::Tensor& reference, const at::Tensor& result,
                        const at::Tensor& fp64_reference, const SameOptions& options);

/// A difference with this message.
Comparison different(Comparison::Kind kind, std::string message);

}  // namespace assay::compare
