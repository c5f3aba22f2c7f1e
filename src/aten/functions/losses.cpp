// Losses of torch.nn.functional that measure how far an input is from a target.
#include <c10/core/GradMode.h>

#include <array>
#include <cmath>
#include <numbers>

#include "aten/functions/operand.h"
#include "aten/functions/reduction.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

at::Tensor scaled(const at::Tensor& tensor, const Operand& factor) {
  return run_tensor("aten::mul", {tensor, tensor_or_wrapped(factor.value)});
}

struct Pair {
  at::Tensor input;
  at::Tensor target;
};

Pair broadcast(const BoundArguments& arguments) {
  const auto tensors = tensors_of(
      run("aten::broadcast_tensors", {list_of({arguments["input"], arguments["target"]})}));
  return {tensors[0], tensors[1]};
}

at::Tensor checked_weight(const BoundArguments& arguments) {
  at::Tensor weight = arguments.tensor("weight");
  if (weight.sizes() != arguments.tensor("input").sizes()) {
    throw UserError("Weights and input must have the same size.");
  }
  return weight;
}

// The mean of weighted errors is over the weights, not the count.
Value reduce_weighted(const at::Tensor& errors, const at::Tensor& weight, const std::string& word) {
  const at::Tensor weighted = errors.mul(weight);
  if (word == "mean") return Operand(weighted.sum().div(weight.sum())).value;
  return reduce_loss(weighted, word);
}

Value cross_entropy(const BoundArguments& arguments) {
  return run("aten::cross_entropy_loss",
             {arguments["input"], arguments["target"], arguments["weight"], reduction(arguments),
              arguments["ignore_index"], arguments["label_smoothing"]});
}

Value nll_loss(const BoundArguments& arguments) {
  return run("aten::nll_loss_nd", {arguments["input"], arguments["target"], arguments["weight"],
                                   reduction(arguments), arguments["ignore_index"]});
}

Value mse_loss(const BoundArguments& arguments) {
  const auto [input, target] = broadcast(arguments);
  if (arguments["weight"].is_none())
    return run("aten::mse_loss", {input, target, reduction(arguments)});
  return reduce_weighted(input.sub(target).pow(2), checked_weight(arguments),
                         reduction_word(arguments));
}

Value l1_loss(const BoundArguments& arguments) {
  const auto [input, target] = broadcast(arguments);
  if (arguments["weight"].is_none())
    return run("aten::l1_loss", {input, target, reduction(arguments)});
  return reduce_weighted(input.sub(target).abs(), checked_weight(arguments),
                         reduction_word(arguments));
}

Value smooth_l1_loss(const BoundArguments& arguments) {
  const auto [input, target] = broadcast(arguments);
  if (arguments.number("beta") == 0.0) {
    return run("aten::l1_loss", {input, target, reduction(arguments)});
  }
  return run("aten::smooth_l1_loss", {input, target, reduction(arguments), arguments["beta"]});
}

Value huber_loss(const BoundArguments& arguments) {
  const auto [input, target] = broadcast(arguments);
  const std::string word = arguments.text("reduction");
  if (arguments["weight"].is_none()) {
    return run("aten::huber_loss", {input, target, reduction_number(word), arguments["delta"]});
  }
  const at::Tensor weight = checked_weight(arguments);
  const at::Tensor errors = run_tensor("aten::huber_loss", {input, target, 0, arguments["delta"]});
  return reduce_loss(errors.mul(weight), word);
}

void check_same_size(const BoundArguments& arguments) {
  if (arguments.tensor("target").sizes() != arguments.tensor("input").sizes()) {
    throw UserError("the target's size must be the same as the input's");
  }
}

Value binary_cross_entropy(const BoundArguments& arguments) {
  check_same_size(arguments);
  Operand weight = arguments["weight"];
  if (!arguments["weight"].is_none()) {
    // Expanded to the size of both together; expanding the target too finds that size.
    const auto expanded = tensors_of(
        run("aten::broadcast_tensors", {list_of({arguments["target"], arguments["weight"]})}));
    weight = arguments.tensor("weight").expand(expanded[0].sizes());
  }
  return run("aten::binary_cross_entropy",
             {arguments["input"], arguments["target"], weight, reduction(arguments)});
}

Value binary_cross_entropy_with_logits(const BoundArguments& arguments) {
  check_same_size(arguments);
  return run("aten::binary_cross_entropy_with_logits",
             {arguments["input"], arguments["target"], arguments["weight"], arguments["pos_weight"],
              reduction(arguments)});
}

Value kl_div(const BoundArguments& arguments) {
  const bool batch_mean = arguments.text("reduction") == "batchmean";
  const bool old_flags = !arguments["size_average"].is_none() || !arguments["reduce"].is_none();
  const std::int64_t number = batch_mean && !old_flags ? 2 : reduction(arguments);
  const at::Tensor input = arguments.tensor("input");
  const at::Tensor reduced = run_tensor("aten::kl_div", {input, arguments["target"], number},
                                        {{"log_target", arguments["log_target"]}});
  if (!batch_mean || input.dim() == 0) return Operand(reduced).value;
  return run("aten::div", {reduced, tensor_or_wrapped(Operand(input.size(0)).value)});
}

Value poisson_nll_loss(const BoundArguments& arguments) {
  return run("aten::poisson_nll_loss",
             {arguments["input"], arguments["target"], arguments["log_input"], arguments["full"],
              arguments["eps"], reduction(arguments)});
}

bool is_variance_per_row(const at::Tensor& input, const at::Tensor& variance) {
  // One variance for all values along some dimensions, which then have size 1.
  if (input.dim() != variance.dim()) return false;
  std::int64_t differing = 0;
  for (std::int64_t i = 0; i < input.dim(); ++i) {
    if (input.size(i) != variance.size(i)) differing += variance.size(i);
  }
  return differing == 1;
}

Value gaussian_nll_loss(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  at::Tensor variance;
  if (arguments["var"].is_float()) {
    if (arguments.number("var") < 0) throw UserError("var has negative entry/entries");
    variance = scaled(run_tensor("aten::ones_like", {input}), arguments["var"]);
  } else {
    variance = arguments.tensor("var");
    if (variance.lt(0).any().item<bool>()) throw UserError("var has negative entry/entries");
  }
  if (variance.sizes() != input.sizes()) {
    if (input.dim() > 0 && input.sizes().slice(0, input.sizes().size() - 1) == variance.sizes()) {
      variance = variance.unsqueeze(-1);
    } else if (!is_variance_per_row(input, variance)) {
      throw UserError("var is of incorrect size");
    }
  }
  variance = variance.clone();
  {
    const c10::AutoGradMode no_grad(false);
    run("aten::clamp_", {variance}, {{"min", arguments["eps"]}});
  }
  const at::Tensor squares = input.sub(arguments.tensor("target")).pow(2);
  at::Tensor loss = scaled(variance.log().add(squares.div(variance)), 0.5);
  if (arguments.truth("full")) {
    const double constant = 0.5 * std::log(2 * std::numbers::pi);
    loss = run_tensor("aten::add_", {loss, tensor_or_wrapped(Operand(constant).value)});
  }
  return reduce_loss(loss, arguments.text("reduction"));
}

Value ctc_loss(const BoundArguments& arguments) {
  return run("aten::ctc_loss",
             {arguments["log_probs"], arguments["targets"], arguments["input_lengths"],
              arguments["target_lengths"], arguments["blank"],
              reduction_number(arguments.text("reduction")), arguments["zero_infinity"]});
}

constexpr std::string_view kWeighted =
    "input, target, weight=None, size_average=None, reduce=None, reduction='mean'";
constexpr std::string_view kWeightLast =
    "input, target, size_average=None, reduce=None, reduction='mean', weight=None";

constexpr std::array kLossFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.cross_entropy",
     "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, "
     "reduction='mean', label_smoothing=0.0",
     cross_entropy},
    {"torch.nn.functional.nll_loss",
     "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, "
     "reduction='mean'",
     nll_loss},
    {"torch.nn.functional.mse_loss", kWeightLast, mse_loss},
    {"torch.nn.functional.l1_loss", kWeightLast, l1_loss},
    {"torch.nn.functional.smooth_l1_loss",
     "input, target, size_average=None, reduce=None, reduction='mean', beta=1.0", smooth_l1_loss},
    {"torch.nn.functional.huber_loss", "input, target, reduction='mean', delta=1.0, weight=None",
     huber_loss},
    {"torch.nn.functional.binary_cross_entropy", kWeighted, binary_cross_entropy},
    {"torch.nn.functional.binary_cross_entropy_with_logits",
     "input, target, weight=None, size_average=None, reduce=None, reduction='mean', "
     "pos_weight=None",
     binary_cross_entropy_with_logits},
    {"torch.nn.functional.kl_div",
     "input, target, size_average=None, reduce=None, reduction='mean', log_target=False", kl_div},
    {"torch.nn.functional.poisson_nll_loss",
     "input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, "
     "reduction='mean'",
     poisson_nll_loss},
    {"torch.nn.functional.gaussian_nll_loss",
     "input, target, var, full=False, eps=1e-6, reduction='mean'", gaussian_nll_loss},
    {"torch.nn.functional.ctc_loss",
     "log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', "
     "zero_infinity=False",
     ctc_loss},
});

}  // namespace

FunctionTable loss_functions() { return kLossFunctions; }

}  // namespace assay::aten
