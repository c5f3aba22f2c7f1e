/// \file Copies of a program's inputs that share memory as the inputs do, for a trial run.
#pragma once

#include <vector>

#include "aten/value.h"

namespace assay::aten {

/// Tensors are copied storage by storage; a tensor given twice is one tensor again; those that
/// require grad do so again, without their history. Other values are themselves.
std::vector<Value> copy_inputs(const std::vector<Value>& inputs);

}  // namespace assay::aten
