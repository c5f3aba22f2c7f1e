/// \file Inputs of a program that share memory. Used by autograd/trace.cpp when one is changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "autograd/joint_graph.h"

namespace assay::autograd {

/// The inputs (each tensor once) that are in the memory of input number `input`, itself included.
std::vector<std::size_t> inputs_sharing_memory(const std::vector<at::Tensor>& inputs,
                                               std::size_t input);

/// The part of the memory that these inputs are in, as seen from the first of them. Throws
/// `TraceError` if one requires a gradient or they differ in dtype.
SharedMemory shared_memory(const std::vector<at::Tensor>& inputs,
                           const std::vector<std::size_t>& sharing);

}  // namespace assay::autograd
