// Activations of torch.nn.functional: an operator, or its in-place twin for `inplace=True`.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

std::string twin(const char* op, const BoundArguments& arguments) {
  return arguments.truth("inplace") ? std::string(op) + "_" : op;
}

// Activations without parameters.
template <const char* op>
Value run_plain(const BoundArguments& arguments) {
  return run(twin(op, arguments), {arguments["input"]});
}

constexpr char kRelu[] = "aten::relu";
constexpr char kRelu6[] = "aten::relu6";
constexpr char kSelu[] = "aten::selu";
constexpr char kSilu[] = "aten::silu";
constexpr char kMish[] = "aten::mish";
constexpr char kHardswish[] = "aten::hardswish";
constexpr char kHardsigmoid[] = "aten::hardsigmoid";

Value elu(const BoundArguments& arguments) {
  return run(twin("aten::elu", arguments), {arguments["input"], arguments["alpha"]});
}

Value celu(const BoundArguments& arguments) {
  return run(twin("aten::celu", arguments), {arguments["input"], arguments["alpha"]});
}

Value leaky_relu(const BoundArguments& arguments) {
  return run(twin("aten::leaky_relu", arguments),
             {arguments["input"], arguments["negative_slope"]});
}

Value rrelu(const BoundArguments& arguments) {
  return run(twin("aten::rrelu", arguments),
             {arguments["input"], arguments["lower"], arguments["upper"], arguments["training"]});
}

Value hardtanh(const BoundArguments& arguments) {
  if (arguments.number("min_val") > arguments.number("max_val")) {
    throw UserError("min_val cannot be greater than max_val");
  }
  return run(twin("aten::hardtanh", arguments),
             {arguments["input"], arguments["min_val"], arguments["max_val"]});
}

Value threshold(const BoundArguments& arguments) {
  return run(twin("aten::threshold", arguments),
             {arguments["input"], arguments["threshold"], arguments["value"]});
}

Value glu(const BoundArguments& arguments) {
  if (arguments.tensor("input").dim() == 0) {
    throw UserError("glu does not support scalars because halving size must be even");
  }
  return run("aten::glu", {arguments["input"], arguments["dim"]});
}

Value softsign(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const Operand one = tensor_or_wrapped(Operand(1).value);
  return run("aten::div", {input, run_tensor("aten::add", {input.abs(), one})});
}

Value tanhshrink(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  return run("aten::sub", {input, input.tanh()});
}

// The dimension that the softmax family takes when none is given: an old rule, kept.
Value softmax_dim(const BoundArguments& arguments) {
  if (!arguments["dim"].is_none()) return arguments["dim"];
  const std::int64_t dims = arguments.tensor("input").dim();
  return Operand(dims == 0 || dims == 1 || dims == 3 ? 0 : 1).value;
}

Value softmax(const BoundArguments& arguments) {
  return run("aten::softmax", {arguments["input"], softmax_dim(arguments), arguments["dtype"]});
}

Value log_softmax(const BoundArguments& arguments) {
  return run("aten::log_softmax", {arguments["input"], softmax_dim(arguments), arguments["dtype"]});
}

Value softmin(const BoundArguments& arguments) {
  return run("aten::softmax",
             {arguments.tensor("input").neg(), softmax_dim(arguments), arguments["dtype"]});
}

Value gumbel_softmax(const BoundArguments& arguments) {
  const at::Tensor logits = arguments.tensor("logits");
  const std::int64_t dim = arguments.integer("dim");
  const at::Tensor noise =
      run_tensor("aten::empty_like", {logits}, {{"memory_format", at::MemoryFormat::Contiguous}})
          .exponential_()
          .log()
          .neg();
  const at::Tensor scaled =
      run_tensor("aten::div", {logits.add(noise), tensor_or_wrapped(arguments["tau"])});
  const at::Tensor soft = scaled.softmax(dim);
  if (!arguments.truth("hard")) return Operand(soft).value;
  const at::Tensor index = std::get<1>(soft.max(dim, true));
  const at::Tensor hard =
      run_tensor("aten::zeros_like", {logits}, {{"memory_format", at::MemoryFormat::Contiguous}})
          .scatter_(dim, index, 1.0);
  // The value of the hard sample with the gradient of the soft one.
  return Operand(hard.sub(soft.detach()).add(soft)).value;
}

constexpr std::string_view kPlain = "input, inplace=False";
constexpr std::string_view kSoftmax = "input, dim=None, _stacklevel=3, dtype=None";

constexpr std::array kActivationFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.relu", kPlain, run_plain<kRelu>},
    {"torch.nn.functional.relu6", kPlain, run_plain<kRelu6>},
    {"torch.nn.functional.selu", kPlain, run_plain<kSelu>},
    {"torch.nn.functional.silu", kPlain, run_plain<kSilu>},
    {"torch.nn.functional.mish", kPlain, run_plain<kMish>},
    {"torch.nn.functional.hardswish", kPlain, run_plain<kHardswish>},
    {"torch.nn.functional.hardsigmoid", kPlain, run_plain<kHardsigmoid>},
    {"torch.nn.functional.elu", "input, alpha=1.0, inplace=False", elu},
    {"torch.nn.functional.celu", "input, alpha=1.0, inplace=False", celu},
    {"torch.nn.functional.leaky_relu", "input, negative_slope=0.01, inplace=False", leaky_relu},
    {"torch.nn.functional.rrelu",
     "input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False", rrelu},
    {"torch.nn.functional.hardtanh", "input, min_val=-1.0, max_val=1.0, inplace=False", hardtanh},
    {"torch.nn.functional.threshold", "input, threshold, value, inplace=False", threshold},
    {"torch.nn.functional._threshold", "input, threshold, value, inplace=False", threshold},
    {"torch.nn.functional.glu", "input, dim=-1", glu},
    {"torch.nn.functional.softsign", "input", softsign},
    {"torch.nn.functional.tanhshrink", "input", tanhshrink},
    {"torch.nn.functional.tanh", "input",
     [](const BoundArguments& arguments) { return run("aten::tanh", {arguments["input"]}); }},
    {"torch.nn.functional.sigmoid", "input",
     [](const BoundArguments& arguments) { return run("aten::sigmoid", {arguments["input"]}); }},
    {"torch.nn.functional.softmax", kSoftmax, softmax},
    {"torch.nn.functional.log_softmax", kSoftmax, log_softmax},
    {"torch.nn.functional.softmin", kSoftmax, softmin},
    {"torch.nn.functional.gumbel_softmax", "logits, tau=1, hard=False, eps=1e-10, dim=-1",
     gumbel_softmax},
});

}  // namespace

FunctionTable activation_functions() { return kActivationFunctions; }

}  // namespace assay::aten
