// The attention kernels of GPUs by their own names, as xFormers, FlashAttention and nested tensors
// call them: with tensors as (batch, length, heads, features), or with all sequences of a batch in
// one dimension, whose ends are given.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "aten/functions/attention_math.h"
#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

using OptionalTensor = std::optional<at::Tensor>;

UserError no_counterpart(const BoundArguments& arguments, const std::string& with) {
  return UserError(
      std::string(arguments.function()) + " with " + with + " has no counterpart on the CPU",
      "--stack torch on a GPU runs the file");
}

double scale_of(const BoundArguments& arguments, const at::Tensor& query) {
  if (!arguments["scale"].is_none()) return arguments.number("scale");
  return 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
}

void check_dropout(const BoundArguments& arguments) {
  if (arguments.number("dropout_p") != 0.0) {
    throw UserError(std::string(arguments.function()) +
                        " with dropout: the GPU's generator decides what is dropped",
                    "there is no counterpart on the CPU; --stack torch on a GPU runs the file");
  }
}

at::Tensor heads_first(const at::Tensor& tensor) { return tensor.transpose(1, 2); }

// Which keys a query sees, by the arguments of an operator.
using Visibility = std::function<void(AttentionCall&)>;

Visibility flash_visibility(const BoundArguments& arguments) {
  const bool is_causal = arguments.truth("is_causal");
  const auto window = [&](std::string_view name) -> std::optional<std::int64_t> {
    if (arguments[name].is_none() || arguments.integer(name) < 0) return std::nullopt;
    return arguments.integer(name);
  };
  const auto left = window("window_size_left");
  const auto right = is_causal ? std::optional<std::int64_t>(0) : window("window_size_right");
  return [left, right](AttentionCall& call) {
    call.left = left;
    call.right = right;
    call.ends_are_aligned = true;
  };
}

Visibility efficient_visibility(const BoundArguments& arguments) {
  enum Mask { kNone, kCausalFromTopLeft, kCausalFromBottomRight };
  const std::int64_t mask = arguments.integer("custom_mask_type");
  std::optional<std::int64_t> left;
  if (!arguments["window_size"].is_none() && arguments.integer("window_size") > 0) {
    left = arguments.integer("window_size") - 1;
  }
  return [mask, left](AttentionCall& call) {
    call.left = left;
    if (mask != kNone) call.right = 0;
    call.ends_are_aligned = mask == kCausalFromBottomRight;
  };
}

// The parts of a call that are independent of each other: the sequences of a batch, if all of them
// are in one dimension, otherwise the whole.
struct Sequences {
  Sequences(const Value& query_ends, const Value& key_ends) {
    if (query_ends.is_none()) return;
    query = ends(query_ends);
    key = key_ends.is_none() ? query : ends(key_ends);
  }

  static std::vector<std::int64_t> ends(const Value& value) {
    const at::Tensor tensor = tensor_of(value).to(at::kLong);
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      found.push_back(tensor.select(0, i).item<std::int64_t>());
    }
    return found;
  }
  std::size_t count() const { return query.empty() ? 1 : query.size() - 1; }
  // The part of a tensor of queries or keys, as (batch, heads, length, features).
  static at::Tensor part(const at::Tensor& tensor, const std::vector<std::int64_t>& ends,
                         std::size_t i) {
    if (ends.empty()) return heads_first(tensor);
    const at::Tensor packed = tensor.dim() == 4 ? tensor.squeeze(0) : tensor;
    return heads_first(packed.slice(0, ends[i], ends[i + 1]).unsqueeze(0));
  }
  // The whole from parts.
  at::Tensor join(const std::vector<at::Tensor>& parts, const at::Tensor& like) const {
    if (query.empty()) return heads_first(parts[0]).contiguous();
    std::vector<at::Tensor> packed;
    for (const at::Tensor& part : parts) packed.push_back(heads_first(part).squeeze(0));
    // What no sequence has (synthesized ends may leave out some) is zero.
    const at::Tensor rest = run_tensor("aten::zeros_like", {like});
    const std::size_t dim = like.dim() == 4 ? 1 : 0;
    const std::int64_t length = like.size(static_cast<std::int64_t>(dim));
    std::int64_t used = 0;
    for (const at::Tensor& part : packed) used += part.size(0);
    packed.push_back((dim == 1 ? rest.squeeze(0) : rest).slice(0, std::min(used, length), length));
    return run_tensor("aten::cat", {packed, 0}).slice(0, 0, length).reshape(like.sizes());
  }

  std::vector<std::int64_t> query;
  std::vector<std::int64_t> key;
};

AttentionCall part_of(const BoundArguments& arguments, const Sequences& sequences, std::size_t i,
                      const OptionalTensor& bias, const Visibility& limit) {
  AttentionCall call;
  call.query = Sequences::part(arguments.tensor("query"), sequences.query, i);
  call.key = Sequences::part(arguments.tensor("key"), sequences.key, i);
  call.value = Sequences::part(arguments.tensor("value"), sequences.key, i);
  call.bias = bias;
  call.scale = scale_of(arguments, call.query);
  call.dropout = arguments.number("dropout_p");
  limit(call);
  return call;
}

AttentionResult attend(const BoundArguments& arguments, const Sequences& sequences,
                       const OptionalTensor& bias, const Visibility& limit) {
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> sums;
  for (std::size_t i = 0; i < sequences.count(); ++i) {
    AttentionResult result = attention(part_of(arguments, sequences, i, bias, limit));
    outputs.push_back(std::move(result.output));
    sums.push_back(std::move(result.logsumexp));
  }
  const at::Tensor sum =
      sequences.query.empty() ? sums[0] : run_tensor("aten::cat", {sums, -1}).squeeze(0);
  return {sequences.join(outputs, arguments.tensor("query")), sum};
}

struct Gradients {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  at::Tensor bias;
};

Gradients attend_backward(const BoundArguments& arguments, std::string_view gradient,
                          const Sequences& sequences, const OptionalTensor& bias,
                          const Visibility& limit) {
  check_dropout(arguments);
  std::vector<at::Tensor> queries;
  std::vector<at::Tensor> keys;
  std::vector<at::Tensor> values;
  Gradients found;
  for (std::size_t i = 0; i < sequences.count(); ++i) {
    const AttentionGradients part =
        attention_backward(part_of(arguments, sequences, i, bias, limit),
                           Sequences::part(arguments.tensor(gradient), sequences.query, i));
    queries.push_back(part.query);
    keys.push_back(part.key);
    values.push_back(part.value);
    found.bias = part.bias;
  }
  found.query = sequences.join(queries, arguments.tensor("query"));
  found.key = sequences.join(keys, arguments.tensor("key"));
  found.value = sequences.join(values, arguments.tensor("value"));
  return found;
}

// The random state and such: empty here, and read by nothing but the backward operators.
Value unused(at::ScalarType dtype = at::kLong) {
  return run("aten::zeros", {std::vector<std::int64_t>{}}, {{"dtype", dtype}});
}

// ---- FlashAttention ----

Value flash_forward(const BoundArguments& arguments) {
  for (const std::string_view name : {"seqused_k", "alibi_slopes", "block_table"}) {
    if (!arguments[name].is_none()) throw no_counterpart(arguments, std::string(name));
  }
  const Sequences sequences(arguments["cum_seq_q"], arguments["cum_seq_k"]);
  const AttentionResult result =
      attend(arguments, sequences, std::nullopt, flash_visibility(arguments));
  return tuple_of({Operand(result.output).value, Operand(result.logsumexp).value, unused(),
                   unused(), unused(result.output.scalar_type())});
}

Value flash_backward(const BoundArguments& arguments) {
  const Sequences sequences(arguments["cum_seq_q"], arguments["cum_seq_k"]);
  const Gradients found =
      attend_backward(arguments, "grad_out", sequences, std::nullopt, flash_visibility(arguments));
  return tuple_of(
      {Operand(found.query).value, Operand(found.key).value, Operand(found.value).value});
}

// ---- xFormers' memory-efficient attention ----

OptionalTensor efficient_bias(const BoundArguments& arguments, const Sequences& sequences) {
  OptionalTensor bias = optional_tensor(arguments["bias"]);
  if (bias && sequences.count() > 1) {
    throw no_counterpart(arguments, "a bias for sequences of several lengths");
  }
  return bias;
}

Value efficient_forward(const BoundArguments& arguments) {
  if (!arguments["seqlen_k"].is_none()) throw no_counterpart(arguments, "seqlen_k");
  const Sequences sequences(arguments["cu_seqlens_q"], arguments["cu_seqlens_k"]);
  const AttentionResult result = attend(arguments, sequences, efficient_bias(arguments, sequences),
                                        efficient_visibility(arguments));
  const auto length = [&](std::string_view given, std::string_view tensor) {
    return arguments[given].is_none() ? Operand(arguments.tensor(tensor).size(1)).value
                                      : arguments[given];
  };
  return tuple_of({Operand(result.output).value, Operand(result.logsumexp).value, unused(),
                   unused(), length("max_seqlen_q", "query"), length("max_seqlen_k", "key")});
}

Value efficient_backward(const BoundArguments& arguments) {
  const Sequences sequences(arguments["cu_seqlens_q"], arguments["cu_seqlens_k"]);
  const Gradients found =
      attend_backward(arguments, "grad_out_", sequences, efficient_bias(arguments, sequences),
                      efficient_visibility(arguments));
  const bool has_bias = arguments.truth("bias_requires_grad") && found.bias.defined();
  return tuple_of({Operand(found.query).value, Operand(found.key).value, Operand(found.value).value,
                   has_bias ? Operand(found.bias).value : Value()});
}

constexpr std::array kGpuRawAttentionFunctions = std::to_array<TorchFunction>({
    {"torch.ops.aten._flash_attention_forward.default",
     "query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, "
     "return_debug_mask, *, scale=None, window_size_left=None, window_size_right=None, "
     "seqused_k=None, alibi_slopes=None, block_table=None, num_splits=None",
     flash_forward},
    {"torch.ops.aten._flash_attention_backward.default",
     "grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, "
     "is_causal, rng_state, unused, *, scale=None, window_size_left=None, window_size_right=None",
     flash_backward},
    {"torch.ops.aten._efficient_attention_forward.default",
     "query, key, value, bias, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, "
     "custom_mask_type, compute_log_sumexp=False, *, scale=None, seqlen_k=None, window_size=None",
     efficient_forward},
    {"torch.ops.aten._efficient_attention_backward.default",
     "grad_out_, query, key, value, bias, out, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, "
     "max_seqlen_k, logsumexp, dropout_p, philox_seed, philox_offset, custom_mask_type, "
     "bias_requires_grad, *, scale=None, num_splits_key=None, window_size=None, "
     "shared_storage_dqdkdv=False",
     efficient_backward},
});

}  // namespace

FunctionTable gpu_raw_attention_functions() { return kGpuRawAttentionFunctions; }

}  // namespace assay::aten
