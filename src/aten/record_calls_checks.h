/// \file What capture has to look at besides operator calls: memory that was filled without one, and
/// derivatives that are code. Used by aten/record_calls.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/node.h>

#include <vector>

#include "aten/value.h"

namespace assay::aten {

/// True for `empty` and its relatives. `torch::tensor({1, 2})` is an empty tensor whose memory is
/// then filled without an operator. So new memory gets a pattern: what has lost it by its first use
/// has contents no operator tells.
bool gives_uninitialised_memory(const c10::OperatorHandle& op);
void write_pattern(const at::Tensor& tensor);
bool has_pattern(const at::Tensor& tensor);

/// Throws `TraceError` if a tensor in `result` has a custom autograd function in its history: its
/// backward is code, and the recorded calls would be differentiated otherwise. `known` histories
/// are not the program's.
void refuse_custom_functions(const Value& result,
                             const std::vector<c10::intrusive_ptr<torch::autograd::Node>>& known);

}  // namespace assay::aten
