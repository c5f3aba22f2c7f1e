// Normalisation of torch.nn.functional: the operators take their arguments in another order.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/python_numbers.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// The last argument of these operators is torch.backends.cudnn.enabled, which the CPU ignores.
constexpr bool kCudnnEnabled = true;

void check_values_per_channel(std::int64_t count) {
  if (count == 1) throw UserError("Expected more than 1 value per channel when training");
}

Value batch_norm(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const double eps = arguments.number("eps");
  const bool training = arguments.truth("training");
  if (training) {
    const at::IntArrayRef sizes = input.sizes();
    if (sizes.empty()) throw UserError("batch_norm needs an input with a batch dimension");
    const std::int64_t inside = sizes.size() > 2 ? product_of_sizes(sizes.slice(2)) : 1;
    check_values_per_channel(multiply_sizes(sizes[0], inside));
    if (eps <= 0.0) throw UserError("batch_norm eps must be positive during training");
  }
  if (eps < 0.0) throw UserError("batch_norm eps must be non-negative");
  return run("aten::batch_norm",
             {input, arguments["weight"], arguments["bias"], arguments["running_mean"],
              arguments["running_var"], training, arguments["momentum"], eps, kCudnnEnabled});
}

Value instance_norm(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const bool use_input_stats = arguments.truth("use_input_stats");
  if (use_input_stats && (input.dim() <= 2 || product_of_sizes(input.sizes().slice(2)) == 1)) {
    throw UserError("Expected more than 1 spatial element when training");
  }
  return run("aten::instance_norm",
             {input, arguments["weight"], arguments["bias"], arguments["running_mean"],
              arguments["running_var"], use_input_stats, arguments["momentum"], arguments["eps"],
              kCudnnEnabled});
}

Value layer_norm(const BoundArguments& arguments) {
  return run("aten::layer_norm",
             {arguments["input"], arguments["normalized_shape"], arguments["weight"],
              arguments["bias"], arguments["eps"], kCudnnEnabled});
}

Value group_norm(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  if (input.dim() < 2) throw UserError("Expected at least 2 dimensions for input tensor");
  const std::int64_t groups = arguments.integer("num_groups");
  if (groups <= 0) throw UserError("Expected num groups to be greater than 0");
  const std::int64_t images = multiply_sizes(input.size(0), input.size(1)) / groups;
  check_values_per_channel(multiply_sizes(images, product_of_sizes(input.sizes().slice(2))));
  return run("aten::group_norm", {input, groups, arguments["weight"], arguments["bias"],
                                  arguments["eps"], kCudnnEnabled});
}

Value local_response_norm(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const std::int64_t size = arguments.integer("size");
  if (input.dim() < 3) throw UserError("Expected 3D or higher dimensionality input");
  if (size < 1) throw UserError("local_response_norm needs a size of at least 1");
  if (input.numel() == 0) return arguments["input"];
  const std::int64_t before = size / 2;
  const std::int64_t after = (size - 1) / 2;
  // The mean of the squares over `size` neighbouring channels.
  at::Tensor mean = input.mul(input);
  if (input.dim() == 3) {
    mean = run_tensor("aten::pad",
                      {mean.unsqueeze(1), std::vector<std::int64_t>{0, 0, before, after}});
    mean = run_tensor("aten::avg_pool2d", {mean, std::vector<std::int64_t>{size, 1}, 1}).squeeze(1);
  } else {
    const std::vector<std::int64_t> folded = {input.size(0), 1, input.size(1), input.size(2), -1};
    mean = run_tensor("aten::pad",
                      {mean.view(folded), std::vector<std::int64_t>{0, 0, 0, 0, before, after}});
    mean = run_tensor("aten::avg_pool3d", {mean, std::vector<std::int64_t>{size, 1, 1}, 1})
               .squeeze(1)
               .view(input.sizes());
  }
  mean = run_tensor("aten::mul", {mean, tensor_or_wrapped(arguments["alpha"])});
  mean = run_tensor("aten::add", {mean, tensor_or_wrapped(arguments["k"])});
  return run("aten::div", {input, run_tensor("aten::pow", {mean, arguments["beta"]})});
}

Value normalize(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const Value& dim = arguments["dim"];
  const Value dims = dim.is_int() ? list_of({dim}) : dim;
  const at::Tensor norm =
      run_tensor("aten::linalg_vector_norm", {input, arguments["p"], dims, true});
  const at::Tensor divisor =
      run_tensor("aten::clamp_min", {norm, arguments["eps"]}).expand_as(input);
  if (arguments["out"].is_none()) return run("aten::div", {input, divisor});
  return run("aten::div", {input, divisor}, {{"out", arguments["out"]}});
}

constexpr std::array kNormalisationFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.batch_norm",
     "input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, "
     "eps=1e-5",
     batch_norm},
    {"torch.nn.functional.instance_norm",
     "input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, "
     "momentum=0.1, eps=1e-5",
     instance_norm},
    {"torch.nn.functional.layer_norm", "input, normalized_shape, weight=None, bias=None, eps=1e-5",
     layer_norm},
    {"torch.nn.functional.group_norm", "input, num_groups, weight=None, bias=None, eps=1e-5",
     group_norm},
    {"torch.nn.functional.local_response_norm", "input, size, alpha=1e-4, beta=0.75, k=1.0",
     local_response_norm},
    {"torch.nn.functional.normalize", "input, p=2.0, dim=1, eps=1e-12, out=None", normalize},
});

}  // namespace

FunctionTable normalisation_functions() { return kNormalisationFunctions; }

}  // namespace assay::aten
