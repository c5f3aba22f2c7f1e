// torch.ops.quantized_decomposed: the quantization of PyTorch 2 export, which Python registers as
// plain arithmetic on floats and integers.
#include <c10/util/Exception.h>

#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

at::Tensor float_input(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  if (input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16) {
    return input.to(at::kFloat);
  }
  TORCH_CHECK(input.scalar_type() == at::kFloat, "Expecting input to have dtype torch.float32");
  return input;
}

at::Tensor quantized_input(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  TORCH_CHECK(input.scalar_type() == dtype_of(arguments["dtype"]), "the input of ",
              arguments.function(), " does not have the dtype it is said to have");
  return input;
}

// A number, also where an overload takes it as a tensor.
at::Scalar number_argument(const BoundArguments& arguments, std::string_view name) {
  const Value& value = arguments[name];
  return value.is_tensor() ? value.leaf.toTensor().item() : scalar_of(value);
}

at::ScalarType out_dtype(const BoundArguments& arguments) {
  return arguments["out_dtype"].is_none() ? at::kFloat : dtype_of(arguments["out_dtype"]);
}

Value clamped_to_range(const BoundArguments& arguments, const at::Tensor& shifted) {
  return Operand(shifted
                     .clamp(number_argument(arguments, "quant_min"),
                            number_argument(arguments, "quant_max"))
                     .to(dtype_of(arguments["dtype"])))
      .value;
}

Value quantize_per_tensor(const BoundArguments& arguments) {
  const double inverse = 1.0 / number_argument(arguments, "scale").toDouble();
  return clamped_to_range(arguments, float_input(arguments).mul(inverse).round().add(
                                         number_argument(arguments, "zero_point")));
}

Value dequantize_per_tensor(const BoundArguments& arguments) {
  return Operand(quantized_input(arguments)
                     .to(out_dtype(arguments))
                     .sub(number_argument(arguments, "zero_point"))
                     .mul(number_argument(arguments, "scale")))
      .value;
}

// One scale for each index of the axis, in a shape that broadcasts.
at::Tensor along_axis(const BoundArguments& arguments, const at::Tensor& values,
                      std::int64_t rank) {
  std::int64_t axis = arguments.integer("axis");
  if (axis < 0) axis += rank;
  TORCH_CHECK(axis >= 0 && axis < rank, "Expecting axis to be < ", rank);
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(axis)] = values.size(0);
  return values.view(shape);
}

Value quantize_per_channel(const BoundArguments& arguments) {
  const at::Tensor input = float_input(arguments);
  const at::Tensor scales = along_axis(arguments, arguments.tensor("scales"), input.dim());
  const at::Tensor zeros = along_axis(arguments, arguments.tensor("zero_points"), input.dim());
  return clamped_to_range(arguments, input.mul(scales.reciprocal()).round().add(zeros));
}

Value dequantize_per_channel(const BoundArguments& arguments) {
  at::Tensor input = quantized_input(arguments);
  const at::Tensor scales = along_axis(arguments, arguments.tensor("scales"), input.dim());
  if (!arguments["zero_points"].is_none()) {
    input = input.sub(along_axis(arguments, arguments.tensor("zero_points"), input.dim()));
  }
  return Operand(input.mul(scales).to(out_dtype(arguments))).value;
}

constexpr std::string_view kPerTensor = "input, scale, zero_point, quant_min, quant_max, dtype";
constexpr std::string_view kFromPerTensor =
    "input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None";

constexpr std::array kQuantizedFunctions = std::to_array<TorchFunction>({
    {"torch.ops.quantized_decomposed.quantize_per_tensor.default", kPerTensor, quantize_per_tensor},
    {"torch.ops.quantized_decomposed.quantize_per_tensor.tensor", kPerTensor, quantize_per_tensor},
    {"torch.ops.quantized_decomposed.quantize_per_tensor.tensor2", kPerTensor, quantize_per_tensor},
    {"torch.ops.quantized_decomposed.dequantize_per_tensor.default", kFromPerTensor,
     dequantize_per_tensor},
    {"torch.ops.quantized_decomposed.dequantize_per_tensor.tensor", kFromPerTensor,
     dequantize_per_tensor},
    {"torch.ops.quantized_decomposed.dequantize_per_tensor.tensor2", kFromPerTensor,
     dequantize_per_tensor},
    {"torch.ops.quantized_decomposed.quantize_per_channel.default",
     "input, scales, zero_points, axis, quant_min, quant_max, dtype", quantize_per_channel},
    {"torch.ops.quantized_decomposed.dequantize_per_channel.default",
     "input, scales, zero_points, axis, quant_min, quant_max, dtype, *, out_dtype=None",
     dequantize_per_channel},
});

}  // namespace

FunctionTable quantized_functions() { return kQuantizedFunctions; }

}  // namespace assay::aten
