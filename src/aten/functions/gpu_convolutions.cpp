// Convolutions and grid samplers of cuDNN, MIOpen and MPS: the same functions as the CPU's, with
// their arguments in another order.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

at::Tensor convolve(const BoundArguments& arguments, Operand bias) {
  const at::Tensor input = arguments.tensor("self");
  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(input.dim() - 2), 0);
  return run_tensor("aten::convolution",
                    {input, arguments["weight"], bias, arguments["stride"], arguments["padding"],
                     arguments["dilation"], false, zeros, arguments["groups"]});
}

at::Tensor convolve_transposed(const BoundArguments& arguments, Operand bias) {
  return run_tensor(
      "aten::convolution",
      {arguments["self"], arguments["weight"], bias, arguments["stride"], arguments["padding"],
       arguments["dilation"], true, arguments["output_padding"], arguments["groups"]});
}

Value convolution(const BoundArguments& arguments) {
  return Operand(convolve(arguments, std::nullopt)).value;
}

Value convolution_with_bias(const BoundArguments& arguments) {
  return Operand(convolve(arguments, arguments["bias"])).value;
}

Value convolution_relu(const BoundArguments& arguments) {
  return Operand(convolve(arguments, arguments["bias"]).relu()).value;
}

Value convolution_add_relu(const BoundArguments& arguments) {
  const Value& alpha = arguments["alpha"];
  const at::Scalar factor = alpha.is_none() ? at::Scalar(1) : scalar_of(alpha);
  const at::Tensor sum = convolve(arguments, arguments["bias"]).add(arguments.tensor("z"), factor);
  return Operand(sum.relu()).value;
}

Value transposed_convolution(const BoundArguments& arguments) {
  return Operand(convolve_transposed(arguments, std::nullopt)).value;
}

Value transposed_convolution_with_bias(const BoundArguments& arguments) {
  return Operand(convolve_transposed(arguments, arguments["bias"])).value;
}

Value depthwise_convolution(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("self");
  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(input.dim() - 2), 0);
  return run("aten::convolution",
             {input, arguments["weight"], arguments["bias"], arguments["stride"],
              arguments["padding"], arguments["dilation"], false, zeros, input.size(1)});
}

Value convolution_backward(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("self");
  const at::Tensor weight = arguments.tensor("weight");
  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(input.dim() - 2), 0);
  const std::vector<std::int64_t> bias_sizes = {weight.size(0)};
  return run("aten::convolution_backward",
             {arguments["grad_output"], input, weight, bias_sizes, arguments["stride"],
              arguments["padding"], arguments["dilation"], false, zeros, arguments["groups"],
              arguments["output_mask"]});
}

// Bilinear, zeros outside, corners aligned: the only mode that cuDNN has.
Value grid_sampler(const BoundArguments& arguments) {
  return run("aten::grid_sampler_2d", {arguments["self"], arguments["grid"], 0, 0, true});
}

Value grid_sampler_backward(const BoundArguments& arguments) {
  const Value both = list_of({Operand(true).value, Operand(true).value});
  return run("aten::grid_sampler_2d_backward",
             {arguments["grad_output"], arguments["self"], arguments["grid"], 0, 0, true, both});
}

std::vector<std::int64_t> grid_sizes(const BoundArguments& arguments) {
  return {arguments.integer("N"), arguments.integer("C"), arguments.integer("H"),
          arguments.integer("W")};
}

Value affine_grid(const BoundArguments& arguments) {
  return run("aten::affine_grid_generator", {arguments["theta"], grid_sizes(arguments), true});
}

Value affine_grid_backward(const BoundArguments& arguments) {
  return run("aten::affine_grid_generator_backward",
             {arguments["grad"], grid_sizes(arguments), true});
}

constexpr std::string_view kCudnn =
    "self, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32=False";
constexpr std::string_view kCudnnTransposed =
    "self, weight, padding, output_padding, stride, dilation, groups, benchmark, deterministic, "
    "allow_tf32=False";
constexpr std::string_view kRelu = "self, weight, bias, stride, padding, dilation, groups";
constexpr std::string_view kAddRelu =
    "self, weight, z, alpha, bias, stride, padding, dilation, groups";
constexpr std::string_view kMiopen =
    "self, weight, bias, padding, stride, dilation, groups, benchmark, deterministic";
constexpr std::string_view kMiopenTransposed =
    "self, weight, bias, padding, output_padding, stride, dilation, groups, benchmark, "
    "deterministic";
constexpr std::string_view kDepthwise =
    "self, weight, kernel_size, bias, stride, padding, dilation";

constexpr std::array kGpuConvolutionFunctions = std::to_array<TorchFunction>({
    {"torch.ops.aten.cudnn_convolution.default", kCudnn, convolution},
    {"torch.ops.aten.cudnn_convolution_relu.default", kRelu, convolution_relu},
    {"torch.ops.aten.cudnn_convolution_add_relu.default", kAddRelu, convolution_add_relu},
    {"torch.ops.aten.cudnn_convolution_transpose.default", kCudnnTransposed,
     transposed_convolution},
    {"torch.ops.aten.miopen_convolution.default", kMiopen, convolution_with_bias},
    {"torch.ops.aten.miopen_depthwise_convolution.default", kMiopen, convolution_with_bias},
    {"torch.ops.aten.miopen_convolution_relu.default", kRelu, convolution_relu},
    {"torch.ops.aten.miopen_convolution_add_relu.default", kAddRelu, convolution_add_relu},
    {"torch.ops.aten.miopen_convolution_transpose.default", kMiopenTransposed,
     transposed_convolution_with_bias},
    {"torch.ops.aten._mps_convolution.default",
     "self, weight, bias, padding, stride, dilation, groups", convolution_with_bias},
    {"torch.ops.aten._mps_convolution_transpose.default",
     "self, weight, padding, output_padding, stride, dilation, groups", transposed_convolution},
    {"torch.ops.aten.mps_convolution_backward.default",
     "self, grad_output, weight, padding, stride, dilation, groups, output_mask",
     convolution_backward},
    {"torch.ops.aten._conv_depthwise2d.default", kDepthwise, depthwise_convolution},
    {"torch.ops.aten.conv_depthwise3d.default", kDepthwise, depthwise_convolution},
    {"torch.ops.aten.cudnn_grid_sampler.default", "self, grid", grid_sampler},
    {"torch.ops.aten.cudnn_grid_sampler_backward.default", "self, grid, grad_output",
     grid_sampler_backward},
    {"torch.ops.aten.cudnn_affine_grid_generator.default", "theta, N, C, H, W", affine_grid},
    {"torch.ops.aten.cudnn_affine_grid_generator_backward.default", "grad, N, C, H, W",
     affine_grid_backward},
});

}  // namespace

FunctionTable gpu_convolution_functions() { return kGpuConvolutionFunctions; }

}  // namespace assay::aten
