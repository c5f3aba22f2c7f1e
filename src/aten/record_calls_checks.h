/// \file What capture has to look at besides operator calls: memory that was filled without one,
/// and derivatives that are code. Used by aten/record_calls.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/autograd/node.h>

#include <vector>

#include "aten/value.h"

namespace assay::aten {

/// `torch::tensor({1, 2})` is an empty tensor whose memory is then filled without an operator. So
/// uninitialized memory gets a pattern: what has lost it by its first use has contents that no
/// operator computed.
void write_pattern(const at::Tensor& tensor);
bool has_pattern(const at::Tensor& tensor);

/// Throws `TraceError` if a tensor in `result` has a custom autograd function in its history: its
/// backward is code, and the recorded calls would be differentiated otherwise. `known` histories
/// are not the program's.
void refuse_custom_functions(const Value& result,
                             const std::vector<c10::intrusive_ptr<torch::autograd::Node>>& known);

}  // namespace assay::aten
