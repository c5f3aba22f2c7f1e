// The attention operators that exist on GPUs only, as their counterparts on the CPU: the same
// function of the same inputs. What a GPU's kernels return besides (their random state, sequence
// lengths) is empty here; only their own backward operators read it.
#include <array>
#include <cmath>

#include "aten/functions/attention_math.h"
#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

using OptionalTensor = std::optional<at::Tensor>;

struct Attended {
  at::Tensor output;
  at::Tensor logsumexp;
};

Operand scale_operand(const BoundArguments& arguments) {
  const Value& scale = arguments["scale"];
  return scale.is_none() ? Operand(std::nullopt) : Operand(scale);
}

double scale_of(const BoundArguments& arguments, const at::Tensor& query) {
  if (!arguments["scale"].is_none()) return arguments.number("scale");
  return 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
}

// The logarithm of the sum that softmax divides by.
at::Tensor logsumexp_of(const BoundArguments& arguments, const at::Tensor& query,
                        const at::Tensor& key, const OptionalTensor& mask, bool is_causal) {
  at::Tensor scores = query.to(at::kFloat)
                          .matmul(key.to(at::kFloat).transpose(-2, -1))
                          .mul(scale_of(arguments, query));
  if (mask) scores = scores.add(*mask);
  if (is_causal) {
    const at::Tensor below =
        run_tensor("aten::ones", {std::vector<std::int64_t>{query.size(-2), key.size(-2)}},
                   {{"dtype", at::kBool}})
            .tril();
    scores = scores.masked_fill(below.logical_not(), -INFINITY);
  }
  return scores.logsumexp(-1);
}

Attended attend(const BoundArguments& arguments, const OptionalTensor& mask) {
  const at::Tensor query = arguments.tensor("query");
  const at::Tensor key = arguments.tensor("key");
  const at::Tensor value = arguments.tensor("value");
  const double dropout = arguments.number("dropout_p");
  const bool is_causal = arguments.truth("is_causal");
  const bool is_plain = dropout == 0.0 && query.size(-1) == value.size(-1) && query.dim() == 4 &&
                        query.size(1) == key.size(1) && !(mask && is_causal);
  if (is_plain) {
    const std::vector<Value> both =
        unpack(run("aten::_scaled_dot_product_flash_attention_for_cpu",
                   {query, key, value, dropout, is_causal},
                   {{"attn_mask", optional_operand(mask)}, {"scale", scale_operand(arguments)}}));
    return {tensor_of(both[0]), tensor_of(both[1])};
  }
  const at::Tensor output =
      run_tensor("aten::scaled_dot_product_attention",
                 {query, key, value, optional_operand(mask), dropout, is_causal},
                 {{"scale", scale_operand(arguments)}});
  return {output, logsumexp_of(arguments, query, key, mask, is_causal)};
}

at::Tensor nothing(at::ScalarType dtype) {
  return run_tensor("aten::zeros", {std::vector<std::int64_t>{}}, {{"dtype", dtype}});
}

Value flash_results(const BoundArguments& arguments, const Attended& attended) {
  return tuple_of({Operand(attended.output).value, Operand(attended.logsumexp).value, Value(),
                   Value(), Operand(arguments.tensor("query").size(-2)).value,
                   Operand(arguments.tensor("key").size(-2)).value,
                   Operand(nothing(at::kLong)).value, Operand(nothing(at::kLong)).value,
                   Operand(nothing(attended.output.scalar_type())).value});
}

Value flash_attention(const BoundArguments& arguments) {
  return flash_results(arguments, attend(arguments, std::nullopt));
}

Value cudnn_attention(const BoundArguments& arguments) {
  return flash_results(arguments, attend(arguments, optional_tensor(arguments["attn_bias"])));
}

Value efficient_attention(const BoundArguments& arguments) {
  // PyTorch 2.0 had no bias: the flag that is second now stood in its place.
  const Value& bias = arguments["attn_bias"];
  const OptionalTensor mask = bias.is_bool() ? std::nullopt : optional_tensor(bias);
  const Attended attended = attend(arguments, mask);
  return tuple_of({Operand(attended.output).value, Operand(attended.logsumexp).value,
                   Operand(nothing(at::kLong)).value, Operand(nothing(at::kLong)).value});
}

// (output, probabilities)
Value attention_of_mps(const BoundArguments& arguments) {
  return run("aten::_scaled_dot_product_attention_math",
             {arguments["query"], arguments["key"], arguments["value"], arguments["attn_mask"],
              arguments["dropout_p"], arguments["is_causal"], arguments["dropout_mask"]},
             {{"scale", scale_operand(arguments)}, {"enable_gqa", arguments["enable_gqa"]}});
}

// ---- backward ----

void check_dropout(const BoundArguments& arguments) {
  if (arguments.number("dropout_p") != 0.0) {
    throw UserError(std::string(arguments.function()) +
                        " with dropout: the GPU's generator decides what is dropped",
                    "there is no counterpart on the CPU; --stack torch on a GPU runs the file");
  }
}

std::vector<Value> attend_backward(const BoundArguments& arguments, std::string_view gradient,
                                   const OptionalTensor& mask) {
  check_dropout(arguments);
  const at::Tensor query = arguments.tensor("query");
  // GPU kernels pad the rows of the sums.
  const at::Tensor sums = arguments.tensor("logsumexp").slice(-1, 0, query.size(-2));
  return unpack(
      run("aten::_scaled_dot_product_flash_attention_for_cpu_backward",
          {arguments.tensor(gradient), query, arguments.tensor("key"), arguments.tensor("value"),
           arguments.tensor("out"), sums, 0.0, arguments.truth("is_causal")},
          {{"attn_mask", optional_operand(mask)}, {"scale", scale_operand(arguments)}}));
}

Value flash_attention_backward(const BoundArguments& arguments) {
  return tuple_of(attend_backward(arguments, "grad_out", std::nullopt));
}

Value cudnn_attention_backward(const BoundArguments& arguments) {
  return tuple_of(attend_backward(arguments, "grad_out", optional_tensor(arguments["attn_bias"])));
}

// The CPU's operator has no gradient of the bias.
Value backward_with_bias(const BoundArguments& arguments, std::string_view gradient,
                         const OptionalTensor& mask) {
  const std::vector<Value> wanted = unpack(arguments["grad_input_mask"]);
  if (!mask || wanted.size() != 4 || !truth_of(wanted[3])) {
    std::vector<Value> gradients = attend_backward(arguments, gradient, mask);
    gradients.emplace_back();
    return tuple_of(std::move(gradients));
  }
  check_dropout(arguments);
  AttentionCall call;
  call.query = arguments.tensor("query");
  call.key = arguments.tensor("key");
  call.value = arguments.tensor("value");
  call.bias = mask;
  call.scale = scale_of(arguments, call.query);
  if (arguments.truth("is_causal")) call.right = 0;
  const AttentionGradients found = attention_backward(call, arguments.tensor(gradient));
  return tuple_of({Operand(found.query).value, Operand(found.key).value, Operand(found.value).value,
                   found.bias.defined() ? Operand(found.bias).value : Value()});
}

Value overrideable_attention_backward(const BoundArguments& arguments) {
  return backward_with_bias(arguments, "grad_out", optional_tensor(arguments["attn_bias"]));
}

Value efficient_attention_backward(const BoundArguments& arguments) {
  const OptionalTensor mask = optional_tensor(arguments["attn_bias"]);
  return backward_with_bias(arguments, "grad_out_", mask);
}

constexpr std::array kGpuAttentionFunctions = std::to_array<TorchFunction>({
    {"torch.ops.aten._scaled_dot_product_flash_attention.default",
     "query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None",
     flash_attention},
    {"torch.ops.aten._scaled_dot_product_flash_attention_backward.default",
     "grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, "
     "is_causal, philox_seed, philox_offset, *, scale=None",
     flash_attention_backward},
    {"torch.ops.aten._scaled_dot_product_cudnn_attention.default",
     "query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, "
     "return_debug_mask=False, *, scale=None",
     cudnn_attention},
    {"torch.ops.aten._scaled_dot_product_cudnn_attention_backward.default",
     "grad_out, query, key, value, out, logsumexp, philox_seed, philox_offset, attn_bias, "
     "cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, *, scale=None",
     cudnn_attention_backward},
    {"torch.ops.aten._scaled_dot_product_efficient_attention.default",
     "query, key, value, attn_bias, compute_log_sumexp=False, dropout_p=0.0, is_causal=False, *, "
     "scale=None",
     efficient_attention},
    {"torch.ops.aten._scaled_dot_product_efficient_attention_backward.default",
     "grad_out_, query, key, value, attn_bias, out, logsumexp, philox_seed, philox_offset, "
     "dropout_p, grad_input_mask, is_causal=False, *, scale=None",
     efficient_attention_backward},
    {"torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default",
     "query, key, value, attn_bias=None, dropout_p=0.0, is_causal=False, return_debug_mask=False, "
     "*, scale=None",
     cudnn_attention},
    {"torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward.default",
     "grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q, "
     "cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset, *, scale=None",
     overrideable_attention_backward},
    {"torch.ops.aten._scaled_dot_product_attention_math_for_mps.default",
     "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, dropout_mask=None, *, "
     "scale=None, enable_gqa=False",
     attention_of_mps},
});

}  // namespace

FunctionTable gpu_attention_functions() { return kGpuAttentionFunctions; }

}  // namespace assay::aten
