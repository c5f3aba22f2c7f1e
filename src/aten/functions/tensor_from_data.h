/// \file Tensors from nested Python lists of numbers, as `torch.tensor` makes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "aten/value.h"

namespace assay::aten {

/// The dtype `torch.tensor(data)` gives: bool, int64, the default dtype or its complex one, widened
/// over all items.
at::ScalarType infer_dtype(const Value& data);

/// A new CPU tensor of the numbers in nested lists; no operator is called to make it. Throws
/// `UserError` for lists of unequal lengths and for numbers that the dtype cannot hold.
at::Tensor tensor_from_data(const Value& data, std::optional<at::ScalarType> dtype = std::nullopt);

}  // namespace assay::aten
