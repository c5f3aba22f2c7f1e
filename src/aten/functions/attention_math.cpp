#include "aten/functions/attention_math.h"

#include <limits>

#include "aten/functions/operand.h"

namespace assay::aten {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

at::ScalarType wide_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// The operands in a wide dtype, and one head of keys for each head of queries.
struct Wide {
  explicit Wide(const AttentionCall& call)
      : repeats(call.query.size(1) / call.key.size(1)),
        query(call.query.to(wide_type(call.query))),
        key(repeated(call.key)),
        value(repeated(call.value)) {}

  at::Tensor repeated(const at::Tensor& tensor) const {
    const at::Tensor wide = tensor.to(wide_type(tensor));
    return repeats == 1 ? wide
                        : run_tensor("aten::repeat_interleave", {wide, repeats, std::int64_t{1}});
  }
  // The gradient of what was repeated.
  at::Tensor summed(const at::Tensor& gradient, const at::Tensor& like) const {
    const at::Tensor sum = repeats == 1 ? gradient : gradient.unflatten(1, {-1, repeats}).sum(2);
    return sum.to(like.scalar_type());
  }

  std::int64_t repeats;
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
};

// True for the scores that do not count.
std::optional<at::Tensor> hidden_scores(const AttentionCall& call) {
  if (!call.left && !call.right) return std::nullopt;
  const std::int64_t queries = call.query.size(-2);
  const std::int64_t keys = call.key.size(-2);
  const at::Tensor rows = run_tensor("aten::arange", {queries}).unsqueeze(1);
  const at::Tensor columns = run_tensor("aten::arange", {keys}).unsqueeze(0);
  const std::int64_t shift = call.ends_are_aligned ? keys - queries : 0;
  const at::Tensor ahead = columns.sub(rows).sub(shift);
  at::Tensor hidden = run_tensor("aten::zeros_like", {ahead}, {{"dtype", at::kBool}});
  if (call.right) hidden = hidden.logical_or(ahead.gt(*call.right));
  if (call.left) hidden = hidden.logical_or(ahead.lt(-*call.left));
  return hidden;
}

at::Tensor scores_of(const AttentionCall& call, const Wide& wide) {
  at::Tensor scores = wide.query.matmul(wide.key.transpose(-2, -1)).mul(call.scale);
  if (call.bias && call.bias->scalar_type() == at::kBool) {
    scores = scores.masked_fill(call.bias->logical_not(), kMinusInfinity);
  } else if (call.bias) {
    scores = scores.add(call.bias->to(scores.scalar_type()));
  }
  if (const auto hidden = hidden_scores(call)) {
    scores = scores.masked_fill(*hidden, kMinusInfinity);
  }
  return scores;
}

// A query that sees no key attends to nothing.
at::Tensor probabilities_of(const at::Tensor& scores, const at::Tensor& logsumexp) {
  const at::Tensor sums = logsumexp.unsqueeze(-1);
  return scores.sub(sums).exp().masked_fill(sums.isneginf(), 0);
}

// The gradient of what was broadcast.
at::Tensor sum_to(at::Tensor gradient, const at::Tensor& like) {
  while (gradient.dim() > like.dim()) gradient = gradient.sum(0);
  for (std::int64_t dim = 0; dim < like.dim(); ++dim) {
    if (like.size(dim) == 1 && gradient.size(dim) != 1) gradient = gradient.sum(dim, true);
  }
  return gradient.to(like.scalar_type());
}

}  // namespace

AttentionResult attention(const AttentionCall& call) {
  const Wide wide(call);
  const at::Tensor scores = scores_of(call, wide);
  const at::Tensor logsumexp = scores.logsumexp(-1);
  at::Tensor probabilities = probabilities_of(scores, logsumexp);
  if (call.dropout > 0) {
    probabilities = run_tensor("aten::dropout", {probabilities, call.dropout, true});
  }
  return {probabilities.matmul(wide.value).to(call.query.scalar_type()), logsumexp};
}

AttentionGradients attention_backward(const AttentionCall& call, const at::Tensor& gradient) {
  const Wide wide(call);
  const at::Tensor scores = scores_of(call, wide);
  const at::Tensor probabilities = probabilities_of(scores, scores.logsumexp(-1));
  const at::Tensor of_output = gradient.to(wide.query.scalar_type());
  const at::Tensor of_probabilities = of_output.matmul(wide.value.transpose(-2, -1));
  const at::Tensor sums = of_probabilities.mul(probabilities).sum(-1, /*keepdim=*/true);
  const at::Tensor of_scores = probabilities.mul(of_probabilities.sub(sums));
  AttentionGradients found;
  found.query = of_scores.matmul(wide.key).mul(call.scale).to(call.query.scalar_type());
  found.key = wide.summed(of_scores.transpose(-2, -1).matmul(wide.query).mul(call.scale), call.key);
  found.value = wide.summed(probabilities.transpose(-2, -1).matmul(of_output), call.value);
  if (call.bias && call.bias->scalar_type() != at::kBool) {
    found.bias = sum_to(of_scores, *call.bias);
  }
  return found;
}

}  // namespace assay::aten
