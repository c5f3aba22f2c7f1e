// Batch and RMS normalization of cuDNN, MIOpen and CUDA, and the steps of SyncBatchNorm.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

std::vector<Value> batch_norm(const BoundArguments& arguments) {
  return unpack(run("aten::native_batch_norm",
                    {arguments["input"], arguments["weight"], arguments["bias"],
                     arguments["running_mean"], arguments["running_var"], arguments["training"],
                     arguments["exponential_average_factor"], arguments["epsilon"]}));
}

// (output, mean, inverse deviation, reserve): the fourth is cuDNN's own.
Value cudnn_batch_norm(const BoundArguments& arguments) {
  std::vector<Value> results = batch_norm(arguments);
  results.push_back(run("aten::empty", {std::vector<std::int64_t>{0}}, {{"dtype", at::kByte}}));
  return tuple_of(std::move(results));
}

Value miopen_batch_norm(const BoundArguments& arguments) { return tuple_of(batch_norm(arguments)); }

Value batch_norm_backward(const BoundArguments& arguments) {
  const Value mask = list_of({Operand(true).value, Operand(true).value, Operand(true).value});
  return run("aten::native_batch_norm_backward",
             {arguments["grad_output"], arguments["input"], arguments["weight"],
              arguments["running_mean"], arguments["running_var"], arguments["save_mean"],
              arguments["save_var"], true, arguments["epsilon"], mask});
}

// ---- SyncBatchNorm: each step by itself, so that processes can exchange what is in between ----

at::ScalarType wide_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// All dimensions but the channels.
std::vector<std::int64_t> reduced_dims(const at::Tensor& input) {
  std::vector<std::int64_t> dims = {0};
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// A value for each channel, in the shape of the input.
at::Tensor per_channel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[1] = values.numel();
  return values.to(wide_type(input)).view(sizes);
}

Value batch_norm_stats(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const at::Tensor wide = input.to(wide_type(input));
  const auto dims = reduced_dims(input);
  const at::Tensor mean = wide.mean(dims);
  const at::Tensor variance = wide.var(dims, /*unbiased=*/false);
  return tuple_of(
      {Operand(mean).value, Operand(variance.add(arguments.number("eps")).rsqrt()).value});
}

Value batch_norm_elements(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  at::Tensor result = input.to(wide_type(input))
                          .sub(per_channel(arguments.tensor("mean"), input))
                          .mul(per_channel(arguments.tensor("invstd"), input));
  if (const auto weight = optional_tensor(arguments["weight"])) {
    result = result.mul(per_channel(*weight, input));
  }
  if (const auto bias = optional_tensor(arguments["bias"])) {
    result = result.add(per_channel(*bias, input));
  }
  return Operand(result.to(input.scalar_type())).value;
}

// The statistics of all processes, from a row for each.
Value gather_stats(const BoundArguments& arguments, const at::Tensor& counts) {
  const at::Tensor means = arguments.tensor("mean");
  const double eps = arguments.number("eps");
  const at::Tensor weights = counts.to(means.scalar_type()).view({-1, 1});
  const at::Tensor total = weights.sum();
  const at::Tensor mean = means.mul(weights).sum(0).div(total);
  const at::Tensor variances = arguments.tensor("invstd").pow(-2).sub(eps);
  const at::Tensor variance = variances.add(means.sub(mean).pow(2)).mul(weights).sum(0).div(total);
  const double momentum = arguments.number("momentum");
  const auto update = [&](std::string_view name, const at::Tensor& now) {
    if (const auto running = optional_tensor(arguments[name])) {
      running->mul_(1 - momentum).add_(now.to(running->scalar_type()), momentum);
    }
  };
  update("running_mean", mean);
  update("running_var", variance.mul(total).div(total.sub(1)));
  return tuple_of({Operand(mean).value, Operand(variance.add(eps).rsqrt()).value});
}

Value batch_norm_gather_stats(const BoundArguments& arguments) {
  const at::Tensor means = arguments.tensor("mean");
  return gather_stats(
      arguments, run_tensor("aten::full",
                            {std::vector<std::int64_t>{means.size(0)}, arguments.integer("count")},
                            {{"dtype", means.scalar_type()}}));
}

Value batch_norm_gather_stats_with_counts(const BoundArguments& arguments) {
  return gather_stats(arguments, arguments.tensor("counts"));
}

Value batch_norm_backward_reduce(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const at::Tensor gradient = arguments.tensor("grad_out").to(wide_type(input));
  const auto dims = reduced_dims(input);
  const at::Tensor sum = gradient.sum(dims);
  const at::Tensor centered =
      input.to(wide_type(input)).sub(per_channel(arguments.tensor("mean"), input));
  const at::Tensor products = gradient.mul(centered).sum(dims);
  const auto weight = optional_tensor(arguments["weight"]);
  const at::ScalarType narrow = weight ? weight->scalar_type() : sum.scalar_type();
  std::vector<Value> results(4);
  if (arguments.truth("input_g")) {
    results[0] = Operand(sum).value;
    results[1] = Operand(products).value;
  }
  if (arguments.truth("weight_g")) {
    results[2] = Operand(products.mul(arguments.tensor("invstd")).to(narrow)).value;
  }
  if (arguments.truth("bias_g")) results[3] = Operand(sum.to(narrow)).value;
  return tuple_of(std::move(results));
}

Value batch_norm_backward_elements(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const at::ScalarType wide = wide_type(input);
  const at::Tensor count = arguments.tensor("count").sum().to(wide);
  const at::Tensor deviation = per_channel(arguments.tensor("invstd"), input);
  const at::Tensor mean_gradient = per_channel(arguments.tensor("sum_dy").div(count), input);
  const at::Tensor mean_product = per_channel(arguments.tensor("sum_dy_xmu").div(count), input);
  at::Tensor result = input.to(wide)
                          .sub(per_channel(arguments.tensor("mean"), input))
                          .mul(deviation.pow(2))
                          .mul(mean_product);
  result = arguments.tensor("grad_out").to(wide).sub(mean_gradient).sub(result).mul(deviation);
  if (const auto weight = optional_tensor(arguments["weight"])) {
    result = result.mul(per_channel(*weight, input));
  }
  return Operand(result.to(input.scalar_type())).value;
}

// ---- RMS normalization ----

Value rms_norm_backward(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const at::ScalarType wide = wide_type(input);
  const at::Tensor gradient = arguments.tensor("grad_out").to(wide);
  const at::Tensor deviation = arguments.tensor("rstd").to(wide);
  const at::Tensor normalized = input.to(wide).mul(deviation);
  const auto weight = optional_tensor(arguments["weight"]);
  const auto normalized_dims =
      static_cast<std::int64_t>(integers_of(arguments["normalized_shape"]).size());
  std::vector<std::int64_t> inner;
  std::vector<std::int64_t> outer;
  for (std::int64_t dim = 0; dim < input.dim(); ++dim) {
    (dim < input.dim() - normalized_dims ? outer : inner).push_back(dim);
  }
  const std::vector<Value> wanted = unpack(arguments["output_mask"]);
  std::vector<Value> results(2);
  if (truth_of(wanted[0])) {
    const at::Tensor weighted = weight ? gradient.mul(weight->to(wide)) : gradient;
    const at::Tensor mean = weighted.mul(normalized).mean(inner, /*keepdim=*/true);
    results[0] =
        Operand(weighted.sub(normalized.mul(mean)).mul(deviation).to(input.scalar_type())).value;
  }
  if (truth_of(wanted[1]) && weight) {
    const at::Tensor products = gradient.mul(normalized);
    results[1] =
        Operand((outer.empty() ? products : products.sum(outer)).to(weight->scalar_type())).value;
  }
  return tuple_of(std::move(results));
}

constexpr std::string_view kBatchNorm =
    "input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon";
constexpr std::string_view kBatchNormBackward =
    "input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon, "
    "reserveSpace=None";

constexpr std::array kGpuNormalizationFunctions = std::to_array<TorchFunction>({
    {"torch.ops.aten.cudnn_batch_norm.default", kBatchNorm, cudnn_batch_norm},
    {"torch.ops.aten.cudnn_batch_norm_backward.default", kBatchNormBackward, batch_norm_backward},
    {"torch.ops.aten.miopen_batch_norm.default", kBatchNorm, miopen_batch_norm},
    {"torch.ops.aten.miopen_batch_norm_backward.default", kBatchNormBackward, batch_norm_backward},
    {"torch.ops.aten.batch_norm_stats.default", "input, eps", batch_norm_stats},
    {"torch.ops.aten.batch_norm_elemt.default", "input, weight, bias, mean, invstd, eps",
     batch_norm_elements},
    {"torch.ops.aten.batch_norm_gather_stats.default",
     "input, mean, invstd, running_mean, running_var, momentum, eps, count",
     batch_norm_gather_stats},
    {"torch.ops.aten.batch_norm_gather_stats_with_counts.default",
     "input, mean, invstd, running_mean, running_var, momentum, eps, counts",
     batch_norm_gather_stats_with_counts},
    {"torch.ops.aten.batch_norm_backward_reduce.default",
     "grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g",
     batch_norm_backward_reduce},
    {"torch.ops.aten.batch_norm_backward_elemt.default",
     "grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count",
     batch_norm_backward_elements},
    {"torch.ops.aten._fused_rms_norm_backward.default",
     "grad_out, input, normalized_shape, rstd, weight, output_mask", rms_norm_backward},
});

}  // namespace

FunctionTable gpu_normalization_functions() { return kGpuNormalizationFunctions; }

}  // namespace assay::aten
