/// \file Attention written out in float32: what operators of GPUs that have no counterpart on the
/// CPU compute, forward and backward. Used by the gpu_*attention*.cpp beside it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace assay::aten {

/// One call, with tensors as (batch, heads, length, features). Keys may have fewer heads than
/// queries: each serves the same number of neighboring ones.
struct AttentionCall {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  std::optional<at::Tensor> bias;  ///< Added to the scores; a bool says which scores count.
  double scale = 1.0;
  double dropout = 0.0;
  /// A query at i sees the keys from i - left to i + right, as far as these are given.
  std::optional<std::int64_t> left;
  std::optional<std::int64_t> right;
  /// Whether the last query is beside the last key, not the first beside the first.
  bool ends_are_aligned = false;
};

struct AttentionResult {
  at::Tensor output;
  at::Tensor logsumexp;  ///< (batch, heads, length) in float32.
};

struct AttentionGradients {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  at::Tensor bias;  ///< Undefined without a bias of numbers.
};

AttentionResult attention(const AttentionCall& call);
/// Without dropout, which only the generator of a GPU could repeat.
AttentionGradients attention_backward(const AttentionCall& call, const at::Tensor& gradient);

}  // namespace assay::aten
