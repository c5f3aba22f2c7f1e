// Batch normalisation. `native_batch_norm` itself is not here: it changes its running statistics
// behind its schema's back, and tracing rewrites it to the functional form before.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_native_batch_norm_legit_no_training_ops.h>
#include <ATen/ops/_native_batch_norm_legit_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>

#include <array>
#include <tuple>
#include <vector>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/statistics.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

// All dimensions but that of the channels.
std::vector<std::int64_t> all_but_channels(const Tensor& input) {
  auto dims = reduced_dims(input, {});
  dims.erase(dims.begin() + 1);
  return dims;
}

Tensor per_channel(const Tensor& channels, const Tensor& input) {
  return along(channels, 1, input.dim());
}

Tensor in_known_format(const Tensor& tensor, const Tensor& input) {
  return widen(tensor.contiguous(input.suggest_memory_format()));
}

// The output, from statistics in the shape that broadcasts.
Tensor normalise(const Tensor& input, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                 const OptionalTensor& weight, const OptionalTensor& bias) {
  Tensor output = (x - mean) * rstd;
  if (is_given(weight)) output = output * per_channel(widen(*weight), input);
  if (is_given(bias)) output = output + per_channel(widen(*bias), input);
  return output.to(input.scalar_type());
}

// What the kernel gives for statistics that it did not compute.
Tensor no_statistics(const Tensor& input, at::ScalarType dtype) {
  return at::full({0}, 0, input.options().dtype(dtype));
}

ThreeTensors with_running_statistics(const Tensor& input, const OptionalTensor& weight,
                                     const OptionalTensor& bias, const Tensor& running_mean,
                                     const Tensor& running_var, double /*momentum*/, double eps) {
  const Tensor mean = per_channel(widen(running_mean), input);
  const Tensor rstd = per_channel((widen(running_var) + eps).sqrt().reciprocal(), input);
  const at::ScalarType dtype = statistics_dtype(input, weight, bias);
  return {normalise(input, in_known_format(input, input), mean, rstd, weight, bias),
          no_statistics(input, dtype), no_statistics(input, dtype)};
}

ThreeTensors with_batch_statistics(const Tensor& input, const OptionalTensor& weight,
                                   const OptionalTensor& bias, bool training, double /*momentum*/,
                                   double eps) {
  TORCH_CHECK(training, "batch norm without running statistics needs training=True");
  const Tensor x = in_known_format(input, input);
  const auto [mean, rstd] = mean_and_rstd(x, all_but_channels(input), eps);
  const at::ScalarType dtype = statistics_dtype(input, weight, bias);
  const std::int64_t channels = input.size(1);
  return {normalise(input, x, rounded(mean, dtype), rounded(rstd, dtype), weight, bias),
          mean.view({channels}).to(dtype), rstd.view({channels}).to(dtype)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> functional(
    const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
    const Tensor& running_mean, const Tensor& running_var, bool training, double momentum,
    double eps) {
  if (!training) {
    const auto [output, mean, rstd] =
        with_running_statistics(input, weight, bias, running_mean, running_var, momentum, eps);
    return {output, mean, rstd, running_mean.clone(), running_var.clone()};
  }
  const Tensor x = in_known_format(input, input);
  const auto over = all_but_channels(input);
  const Tensor mean = mean_over(x, over, true);
  const Tensor squares = sum_over(square(x - mean), over, true);
  const std::int64_t count = count_in(input, over);
  const Tensor rstd = (squares / count + eps).rsqrt();

  const std::int64_t channels = input.size(1);
  const auto moved = [&](const Tensor& running, const Tensor& now) {
    const Tensor kept = widen(running) * (1 - momentum);
    return (now.view({channels}) * momentum + kept).to(running.scalar_type());
  };
  const at::ScalarType dtype = statistics_dtype(input, weight, bias);
  return {normalise(input, x, rounded(mean, dtype), rounded(rstd, dtype), weight, bias),
          mean.view({channels}).to(dtype), rstd.view({channels}).to(dtype),
          moved(running_mean, mean), moved(running_var, squares / (count - 1))};
}

ThreeTensors native_batch_norm_backward(const Tensor& grad, const Tensor& input,
                                        const OptionalTensor& weight,
                                        const OptionalTensor& running_mean,
                                        const OptionalTensor& running_var,
                                        const OptionalTensor& save_mean,
                                        const OptionalTensor& save_invstd, bool train, double eps,
                                        std::array<bool, 3> mask) {
  const Tensor mean = per_channel(widen(train ? *save_mean : *running_mean), input);
  const Tensor rstd = per_channel(
      train ? widen(*save_invstd) : (widen(*running_var) + eps).sqrt().reciprocal(), input);
  const auto over = all_but_channels(input);
  const Tensor g = in_known_format(grad, input);
  const Tensor normalised = (in_known_format(input, input) - mean) * rstd;
  const at::ScalarType dtype = is_given(weight) ? weight->scalar_type() : input.scalar_type();

  ThreeTensors result;
  if (mask[0]) {
    const Tensor inner = is_given(weight) ? g * per_channel(widen(*weight), input) : g;
    std::get<0>(result) =
        (train ? normalised_backward(inner, normalised, rstd, over) : inner * rstd)
            .to(input.scalar_type());
  }
  if (mask[1]) std::get<1>(result) = sum_over(g * normalised, over, false).to(dtype);
  if (mask[2]) std::get<2>(result) = sum_over(g, over, false).to(dtype);
  return result;
}

}  // namespace

DecompositionTable batch_norm_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::_native_batch_norm_legit_functional>(
          "_to_copy, add, clone, div, full, mul, reciprocal, rsqrt, sqrt, sub, sum, view",
          functional),
      row<ops::_native_batch_norm_legit_no_stats>(
          "_to_copy, add, clone, div, mul, rsqrt, sub, sum, view", with_batch_statistics),
      row<ops::_native_batch_norm_legit_no_training>(
          "_to_copy, add, clone, full, mul, reciprocal, sqrt, sub, view", with_running_statistics),
      row<ops::native_batch_norm_backward>(
          "_to_copy, add, clone, div, mul, reciprocal, sqrt, sub, sum, view",
          native_batch_norm_backward),
  });
  return table;
}

}  // namespace assay::autograd
