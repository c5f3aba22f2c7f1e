/// \file Copies of a program's inputs that share memory as the inputs do, for a trial run.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "aten/value.h"

namespace assay::aten {

/// The tensor, on the same memory, as the result of a call: it may be changed in place, which a
/// leaf that requires grad may not, nor a view of one. A leaf comes back as it is if it requires
/// none.
at::Tensor with_history(const at::Tensor& leaf);

/// Tensors are copied storage by storage; a tensor given twice is one tensor again; those that
/// require grad do so again, as leaves or not, without their history. Other values are themselves.
std::vector<Value> copy_inputs(const std::vector<Value>& inputs);

}  // namespace assay::aten
