/// \file Brings tensors to a size near 1, so that a tolerance means the same for all.
#pragma once

#include <vector>

#include "aten/value.h"

namespace assay::compare {

/// For each tensor of the value, the power of two that brings its root mean square near 1; 1 for
/// what is not floating point. Multiplying by a power of two rounds nothing.
std::vector<double> scales_of(const aten::Value& value);

/// The value with its tensors multiplied by the scales, in order.
aten::Value scaled(const aten::Value& value, const std::vector<double>& scales);

}  // namespace assay::compare
