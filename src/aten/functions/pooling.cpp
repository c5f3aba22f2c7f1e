// Pooling of torch.nn.functional. What a function returns depends on `return_indices`.
#include <array>
#include <cmath>

#include "aten/functions/operand.h"
#include "aten/functions/python_numbers.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// "aten::max_pool" and 2 make "aten::max_pool2d".
std::string with_dims(const char* prefix, int dims, const char* suffix = "") {
  return prefix + std::to_string(dims) + "d" + suffix;
}

// No stride means the kernel's size, which operators take as an empty list.
Operand stride_or_empty(const Value& stride) {
  return stride.is_none() ? Operand(std::vector<std::int64_t>()) : Operand(stride);
}

Value max_pool(const BoundArguments& arguments, int dims, bool return_indices) {
  const char* suffix = return_indices ? "_with_indices" : "";
  return run(with_dims("aten::max_pool", dims, suffix),
             {arguments["input"], arguments["kernel_size"], stride_or_empty(arguments["stride"]),
              arguments["padding"], arguments["dilation"], arguments["ceil_mode"]});
}

template <int dims>
Value run_max_pool(const BoundArguments& arguments) {
  return max_pool(arguments, dims, arguments.truth("return_indices"));
}

template <int dims>
Value run_max_pool_with_indices(const BoundArguments& arguments) {
  return max_pool(arguments, dims, true);
}

// The output size, where None means as large as the input.
Operand filled_size(const BoundArguments& arguments, int dims) {
  const Value& wanted = arguments["output_size"];
  if (!holds_sequence(wanted)) return wanted;
  const at::Tensor input = arguments.tensor("input");
  const std::vector<Value> given = unpack(wanted);
  if (given.size() != static_cast<std::size_t>(dims)) return wanted;
  std::vector<Value> sizes;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto from_end = static_cast<std::int64_t>(given.size() - i);
    sizes.push_back(given[i].is_none() ? Operand(input.size(-from_end)).value : given[i]);
  }
  return list_of(std::move(sizes));
}

template <int dims>
Value adaptive_avg_pool(const BoundArguments& arguments) {
  return run(with_dims("aten::adaptive_avg_pool", dims),
             {arguments["input"], filled_size(arguments, dims)});
}

template <int dims>
Value adaptive_max_pool_with_indices(const BoundArguments& arguments) {
  return run(with_dims("aten::adaptive_max_pool", dims),
             {arguments["input"], filled_size(arguments, dims)});
}

template <int dims>
Value adaptive_max_pool(const BoundArguments& arguments) {
  Value both = adaptive_max_pool_with_indices<dims>(arguments);
  return arguments.truth("return_indices") ? both : unpack(both).front();
}

// A mean of powers, taken as a root; an infinite power is the largest (or smallest) value.
template <int dims>
Value lp_pool(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const double power = arguments.number("norm_type");
  const Operand stride = stride_or_empty(arguments["stride"]);
  if (std::isinf(power)) {
    const at::Tensor magnitude = power > 0 ? input.abs() : input.abs().neg();
    const at::Tensor pooled =
        run_tensor(with_dims("aten::max_pool", dims),
                   {magnitude, arguments["kernel_size"], stride, 0, 1, arguments["ceil_mode"]});
    return Operand(power > 0 ? pooled : pooled.neg()).value;
  }
  const at::Tensor mean = run_tensor(with_dims("aten::avg_pool", dims),
                                     {run_tensor("aten::pow", {input, arguments["norm_type"]}),
                                      arguments["kernel_size"], stride, 0, arguments["ceil_mode"]});
  const std::int64_t count = product_of_sizes(repeat_to(arguments["kernel_size"], dims));
  const at::Tensor total = run_tensor(
      "aten::mul", {mean.sign().mul(mean.abs().relu()), tensor_or_wrapped(Operand(count).value)});
  return run("aten::pow", {total, 1.0 / power});
}

// The windows' places are random; one draw for each image, channel and dimension.
template <int dims>
Value fractional_max_pool_with_indices(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  Operand size = arguments["output_size"];
  if (arguments["output_size"].is_none()) {
    const Value& ratio = arguments["output_ratio"];
    if (ratio.is_none()) {
      throw UserError("fractional_max_pool requires either an output_size or an output_ratio");
    }
    const std::vector<Value> factors =
        holds_sequence(ratio) ? unpack(ratio) : std::vector<Value>(dims, ratio);
    if (factors.size() != dims) throw UserError("output_ratio has the wrong number of elements");
    std::vector<std::int64_t> sizes;
    for (std::int64_t i = 0; i < dims; ++i) {
      const Value& factor = factors[static_cast<std::size_t>(i)];
      const Value length = Operand(input.size(i - dims)).value;
      sizes.push_back(number_to_integer(calculate(BinaryOperation::multiply, length, factor)));
    }
    size = sizes;
  }
  Operand samples = arguments["_random_samples"];
  if (arguments["_random_samples"].is_none()) {
    const std::int64_t batch = input.dim() == dims + 1 ? 1 : input.size(0);
    const std::vector<std::int64_t> shape = {batch, input.size(-dims - 1), dims};
    samples = run_tensor("aten::rand", {shape},
                         {{"dtype", input.scalar_type()}, {"device", input.device()}});
  }
  return run(with_dims("aten::fractional_max_pool", dims),
             {input, arguments["kernel_size"], size, samples});
}

template <int dims>
Value fractional_max_pool(const BoundArguments& arguments) {
  Value both = fractional_max_pool_with_indices<dims>(arguments);
  return arguments.truth("return_indices") ? both : unpack(both).front();
}

std::vector<std::int64_t> unpooled_size(const BoundArguments& arguments, std::size_t dims) {
  const at::Tensor input = arguments.tensor("input");
  const auto kernel = repeat_to(arguments["kernel_size"], dims);
  const auto stride = arguments["stride"].is_none() ? kernel : repeat_to(arguments["stride"], dims);
  const auto padding = repeat_to(arguments["padding"], dims);
  if (kernel.size() != dims || stride.size() != dims || padding.size() != dims) {
    throw UserError("max_unpool: a list has the wrong number of elements");
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t size =
        input.size(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(dims));
    const std::int64_t covered = add_sizes(multiply_sizes(size - 1, stride[i]), kernel[i]);
    sizes.push_back(add_sizes(covered, multiply_sizes(padding[i], -2)));
  }
  if (arguments["output_size"].is_none()) return sizes;
  auto wanted = integers_of(arguments["output_size"]);
  if (wanted.size() == dims + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.size() != dims) throw UserError("output_size has the wrong number of elements");
  for (std::size_t i = 0; i < dims; ++i) {
    if (wanted[i] <= add_sizes(sizes[i], multiply_sizes(stride[i], -1)) ||
        wanted[i] >= add_sizes(sizes[i], stride[i])) {
      throw UserError("invalid output_size in dim " + std::to_string(i));
    }
  }
  return wanted;
}

Value max_unpool1d(const BoundArguments& arguments) {
  auto size = unpooled_size(arguments, 1);
  size.push_back(1);
  return Operand(run_tensor("aten::max_unpool2d", {arguments.tensor("input").unsqueeze(-1),
                                                   arguments.tensor("indices").unsqueeze(-1), size})
                     .squeeze(-1))
      .value;
}

Value max_unpool2d(const BoundArguments& arguments) {
  return run("aten::max_unpool2d",
             {arguments["input"], arguments["indices"], unpooled_size(arguments, 2)});
}

Value max_unpool3d(const BoundArguments& arguments) {
  const auto kernel = repeat_to(arguments["kernel_size"], 3);
  const auto stride = arguments["stride"].is_none() ? kernel : repeat_to(arguments["stride"], 3);
  return run("aten::max_unpool3d",
             {arguments["input"], arguments["indices"], unpooled_size(arguments, 3), stride,
              repeat_to(arguments["padding"], 3)});
}

constexpr std::string_view kMaxPool =
    "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
    "return_indices=False";
constexpr std::string_view kAdaptive = "input, output_size, return_indices=False";
constexpr std::string_view kFractional =
    "input, kernel_size, output_size=None, output_ratio=None, return_indices=False, "
    "_random_samples=None";
constexpr std::string_view kLpPool = "input, norm_type, kernel_size, stride=None, ceil_mode=False";
constexpr std::string_view kUnpool =
    "input, indices, kernel_size, stride=None, padding=0, output_size=None";

constexpr std::array kPoolingFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.max_pool1d", kMaxPool, run_max_pool<1>},
    {"torch.nn.functional.max_pool2d", kMaxPool, run_max_pool<2>},
    {"torch.nn.functional.max_pool3d", kMaxPool, run_max_pool<3>},
    {"torch.nn.functional.max_pool1d_with_indices", kMaxPool, run_max_pool_with_indices<1>},
    {"torch.nn.functional.max_pool2d_with_indices", kMaxPool, run_max_pool_with_indices<2>},
    {"torch.nn.functional.max_pool3d_with_indices", kMaxPool, run_max_pool_with_indices<3>},
    {"torch.nn.functional.adaptive_avg_pool2d", "input, output_size", adaptive_avg_pool<2>},
    {"torch.nn.functional.adaptive_avg_pool3d", "input, output_size", adaptive_avg_pool<3>},
    {"torch.nn.functional.adaptive_max_pool1d", kAdaptive, adaptive_max_pool<1>},
    {"torch.nn.functional.adaptive_max_pool2d", kAdaptive, adaptive_max_pool<2>},
    {"torch.nn.functional.adaptive_max_pool3d", kAdaptive, adaptive_max_pool<3>},
    {"torch.nn.functional.adaptive_max_pool1d_with_indices", kAdaptive,
     adaptive_max_pool_with_indices<1>},
    {"torch.nn.functional.adaptive_max_pool2d_with_indices", kAdaptive,
     adaptive_max_pool_with_indices<2>},
    {"torch.nn.functional.adaptive_max_pool3d_with_indices", kAdaptive,
     adaptive_max_pool_with_indices<3>},
    {"torch.nn.functional.fractional_max_pool2d", kFractional, fractional_max_pool<2>},
    {"torch.nn.functional.fractional_max_pool3d", kFractional, fractional_max_pool<3>},
    {"torch.nn.functional.fractional_max_pool2d_with_indices", kFractional,
     fractional_max_pool_with_indices<2>},
    {"torch.nn.functional.fractional_max_pool3d_with_indices", kFractional,
     fractional_max_pool_with_indices<3>},
    {"torch.nn.functional.lp_pool1d", kLpPool, lp_pool<1>},
    {"torch.nn.functional.lp_pool2d", kLpPool, lp_pool<2>},
    {"torch.nn.functional.lp_pool3d", kLpPool, lp_pool<3>},
    {"torch.nn.functional.max_unpool1d", kUnpool, max_unpool1d},
    {"torch.nn.functional.max_unpool2d", kUnpool, max_unpool2d},
    {"torch.nn.functional.max_unpool3d", kUnpool, max_unpool3d},
});

}  // namespace

FunctionTable pooling_functions() { return kPoolingFunctions; }

}  // namespace assay::aten
