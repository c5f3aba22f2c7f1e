/// \file What the tables of normalisations share.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace assay::autograd {

/// Mean and 1 / sqrt(variance + eps) over `dims`, with those dimensions kept.
std::tuple<at::Tensor, at::Tensor> mean_and_rstd(const at::Tensor& x, at::IntArrayRef dims,
                                                 double eps);

/// The derivative of `normalised = (x - mean) * rstd`, where mean and rstd are over `dims` of x:
/// the gradient less what moving the mean and the variance takes back.
at::Tensor normalised_backward(const at::Tensor& grad, const at::Tensor& normalised,
                               const at::Tensor& rstd, at::IntArrayRef dims);

/// The dtype of a normalisation's statistics on the CPU: that of the input, unless a parameter
/// (weight or bias) is wider.
at::ScalarType statistics_dtype(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                const std::optional<at::Tensor>& bias);

/// True if an optional tensor is there.
inline bool is_given(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined();
}

}  // namespace assay::autograd
