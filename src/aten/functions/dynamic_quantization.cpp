// torch.ops.quantized_decomposed, continued: scales and zero points that are computed from the
// values, for a whole tensor or one of its rows (a token), and scales for groups within a row.
#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <array>
#include <limits>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

Value pair_of(const at::Tensor& scale, const at::Tensor& zero_point) {
  return tuple_of({Operand(scale).value, Operand(zero_point).value});
}

struct Extent {
  at::Tensor least;  // at most 0
  at::Tensor most;   // at least 0
};

Extent extent_of(const at::Tensor& input) {
  const auto [least, most] = at::aminmax(input);
  return {least.clamp_max(0), most.clamp_min(0)};
}

at::Tensor at_least(const at::Tensor& scale, double smallest) {
  return at::maximum(scale, at::full({1}, smallest, scale.options().dtype(at::kFloat)));
}

Value choose_affine(const BoundArguments& arguments) {
  const auto [least, most] = extent_of(arguments.tensor("input"));
  const std::int64_t low = arguments.integer("quant_min");
  const std::int64_t high = arguments.integer("quant_max");
  const at::Tensor scale = at_least((most - least) / static_cast<double>(high - low),
                                    scalar_of(arguments["eps"]).toDouble());
  const at::Tensor zero_point = ((least / scale).round().to(at::kInt).neg() + low).clamp(low, high);
  return pair_of(scale.to(at::kDouble), zero_point.to(at::kLong));
}

Value choose_symmetric(const BoundArguments& arguments) {
  const auto [least, most] = extent_of(arguments.tensor("input"));
  const auto range =
      static_cast<double>(arguments.integer("quant_max") - arguments.integer("quant_min"));
  const at::Tensor scale =
      at_least(at::maximum(-least, most) / (range / 2), scalar_of(arguments["eps"]).toDouble());
  const std::int64_t middle = dtype_of(arguments["dtype"]) == at::kByte ? 128 : 0;
  return pair_of(scale.to(at::kDouble), at::full({1}, middle, scale.options().dtype(at::kLong)));
}

Value choose_by_token(const BoundArguments& arguments) {
  TORCH_CHECK(dtype_of(arguments["dtype"]) == at::kChar,
              "choose_qparams_per_token supports torch.int8 only");
  at::Tensor largest = arguments.tensor("input").abs().amax(-1, /*keepdim=*/true);
  if (largest.scalar_type() == at::kHalf) largest = largest.to(at::kFloat);
  const at::Tensor scale = largest.clamp_min(1e-5).div(127);
  return pair_of(scale, at::zeros_like(scale));
}

// The zero point is computed from the end of the range where it rounds less.
Value choose_by_token_affine(const BoundArguments& arguments) {
  constexpr double kLow = -128;
  constexpr double kHigh = 127;
  const at::Tensor input = arguments.tensor("input");
  const at::Tensor least = input.amin(-1, /*keepdim=*/true).clamp_max(0);
  const at::Tensor most = input.amax(-1, /*keepdim=*/true).clamp_min(0);
  const at::Tensor scale =
      ((most - least) / (kHigh - kLow)).clamp_min(std::numeric_limits<float>::epsilon());
  const at::Tensor low_end = least / scale;
  const at::Tensor high_end = most / scale;
  const at::Tensor is_low = (low_end + kLow) + (high_end + kHigh) > 0;
  const at::Tensor zero_point =
      at::where(is_low, low_end.neg() + kLow, high_end.neg() + kHigh).clamp(kLow, kHigh).round();
  return pair_of(scale.to(at::kDouble), zero_point.to(at::kLong));
}

Value quantize_by_token(const BoundArguments& arguments) {
  return Operand(arguments.tensor("input")
                     .mul(arguments.tensor("scales").reciprocal())
                     .add(arguments.tensor("zero_points"))
                     .round()
                     .clamp(arguments.integer("quant_min"), arguments.integer("quant_max"))
                     .to(dtype_of(arguments["dtype"])))
      .value;
}

Value dequantize_by_token(const BoundArguments& arguments) {
  return Operand((arguments.tensor("input") - arguments.tensor("zero_points"))
                     .mul(arguments.tensor("scales"))
                     .to(dtype_of(arguments["output_dtype"])))
      .value;
}

// The groups of all rows, one below the other.
at::Tensor groups_of(const BoundArguments& arguments, const at::Tensor& input) {
  std::int64_t size = arguments.integer("group_size");
  TORCH_CHECK(input.dim() == 2 && size > 1, "expected a matrix and groups of two or more");
  if (size > input.size(1) && arguments.tensor("scales").size(-1) == 1) size = input.size(1);
  TORCH_CHECK(input.size(1) % size == 0, "rows of ", input.size(1), " have no groups of ", size);
  return input.reshape({-1, size});
}

Value quantize_groups(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  return Operand(groups_of(arguments, input)
                     .mul(arguments.tensor("scales").reshape({-1, 1}).reciprocal())
                     .add(arguments.tensor("zero_points").reshape({-1, 1}))
                     .round()
                     .clamp(arguments.integer("quant_min"), arguments.integer("quant_max"))
                     .to(dtype_of(arguments["dtype"]))
                     .reshape_as(input))
      .value;
}

Value dequantize_groups(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  at::Tensor groups = groups_of(arguments, input);
  if (const auto zeros = optional_tensor(arguments["zero_points"])) {
    groups = groups.sub(zeros->reshape({-1, 1}));
  }
  return Operand(groups.mul(arguments.tensor("scales").reshape({-1, 1}))
                     .reshape_as(input)
                     .to(dtype_of(arguments["output_dtype"])))
      .value;
}

constexpr std::string_view kChoose = "input, quant_min, quant_max, eps, dtype";
constexpr std::string_view kByToken = "input, scales, zero_points, quant_min, quant_max, dtype";
constexpr std::string_view kFromToken =
    "input, scales, zero_points, quant_min, quant_max, dtype, output_dtype";
constexpr std::string_view kGroups =
    "input, scales, zero_points, quant_min, quant_max, dtype, group_size";
constexpr std::string_view kFromGroups =
    "input, scales, zero_points, quant_min, quant_max, dtype, group_size, output_dtype";

constexpr std::array kDynamicQuantization = std::to_array<TorchFunction>({
    {"torch.ops.quantized_decomposed.choose_qparams.tensor", kChoose, choose_affine},
    {"torch.ops.quantized_decomposed.choose_qparams_symmetric.tensor", kChoose, choose_symmetric},
    {"torch.ops.quantized_decomposed.choose_qparams_per_token.default", "input, dtype",
     choose_by_token},
    {"torch.ops.quantized_decomposed.choose_qparams_per_token_asymmetric.default", "input, dtype",
     choose_by_token_affine},
    {"torch.ops.quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default",
     "input, dtype", choose_by_token_affine},
    {"torch.ops.quantized_decomposed.quantize_per_token.default", kByToken, quantize_by_token},
    {"torch.ops.quantized_decomposed.dequantize_per_token.default", kFromToken,
     dequantize_by_token},
    {"torch.ops.quantized_decomposed.quantize_per_channel_group.default", kGroups, quantize_groups},
    {"torch.ops.quantized_decomposed.dequantize_per_channel_group.default", kFromGroups,
     dequantize_groups},
});

}  // namespace

FunctionTable dynamic_quantization_functions() { return kDynamicQuantization; }

}  // namespace assay::aten
