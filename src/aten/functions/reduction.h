/// \file How a loss is reduced: `reduction` is a word in Python and a number in the operators.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "aten/torch_functions.h"

namespace assay::aten {

/// The word asked for; two old flags, `size_average` and `reduce`, still have precedence.
std::string reduction_word(const BoundArguments& arguments);
/// The operators' number for a word. Throws `UserError` for an unknown one.
std::int64_t reduction_number(const std::string& word);
/// Both in one.
std::int64_t reduction(const BoundArguments& arguments);
/// The mean, the sum, or the loss as it is.
Value reduce_loss(const at::Tensor& loss, const std::string& word);

}  // namespace assay::aten
