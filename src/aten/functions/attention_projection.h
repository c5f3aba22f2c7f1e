/// \file The first step of multi-head attention: query, key and value times their weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace assay::aten {

using OptionalTensor = std::optional<at::Tensor>;

/// `input @ weight.T + bias`.
at::Tensor run_linear(const at::Tensor& input, const at::Tensor& weight,
                      const OptionalTensor& bias);

/// One tensor each for query, key and value.
struct Projected {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
};

/// With all weights in one matrix. How many products are made depends on which inputs are the same
/// tensor, as in eager; their rounding may differ.
Projected project_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const at::Tensor& weight, const OptionalTensor& bias);

/// With a matrix each; the biases are one vector.
Projected project_separately(const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const Projected& weights,
                             const OptionalTensor& bias);

}  // namespace assay::aten
