// The losses of torch.nn.functional that push scores or distances apart by a margin.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/reduction.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

Value margin_ranking_loss(const BoundArguments& arguments) {
  const std::int64_t dims = arguments.tensor("input1").dim();
  if (dims != arguments.tensor("input2").dim() || dims != arguments.tensor("target").dim()) {
    throw UserError("margin_ranking_loss : All input tensors should have same dimension");
  }
  return run("aten::margin_ranking_loss",
             {arguments["input1"], arguments["input2"], arguments["target"], arguments["margin"],
              reduction(arguments)});
}

Value hinge_embedding_loss(const BoundArguments& arguments) {
  return run("aten::hinge_embedding_loss",
             {arguments["input"], arguments["target"], arguments["margin"], reduction(arguments)});
}

Value cosine_embedding_loss(const BoundArguments& arguments) {
  return run("aten::cosine_embedding_loss",
             {arguments["input1"], arguments["input2"], arguments["target"], arguments["margin"],
              reduction(arguments)});
}

Value multilabel_margin_loss(const BoundArguments& arguments) {
  return run("aten::multilabel_margin_loss",
             {arguments["input"], arguments["target"], reduction(arguments)});
}

Value soft_margin_loss(const BoundArguments& arguments) {
  return run("aten::soft_margin_loss",
             {arguments["input"], arguments["target"], reduction(arguments)});
}

Value multilabel_soft_margin_loss(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const at::Tensor target = arguments.tensor("target");
  const at::Tensor inside = target.mul(run_tensor("aten::log_sigmoid", {input}));
  const at::Tensor outside =
      run_tensor("aten::rsub", {target, 1}).mul(run_tensor("aten::log_sigmoid", {input.neg()}));
  at::Tensor loss = inside.add(outside).neg();
  if (!arguments["weight"].is_none()) loss = loss.mul(arguments.tensor("weight"));
  const std::int64_t class_dim = input.dim() - 1;
  const Value classes = Operand(input.size(class_dim)).value;
  loss = run_tensor("aten::div", {loss.sum(class_dim), tensor_or_wrapped(classes)});
  return reduce_loss(loss, reduction_word(arguments));
}

Value multi_margin_loss(const BoundArguments& arguments) {
  const double p = arguments.number("p");
  if (p != 1 && p != 2) throw UserError("only p == 1 and p == 2 supported");
  const auto weight = optional_tensor(arguments["weight"]);
  if (weight && weight->dim() != 1) throw UserError("weight must be one-dimensional");
  return run("aten::multi_margin_loss",
             {arguments["input"], arguments["target"], arguments["p"], arguments["margin"],
              arguments["weight"], reduction(arguments)});
}

Value triplet_margin_loss(const BoundArguments& arguments) {
  if (arguments.number("margin") <= 0) throw UserError("margin must be greater than 0");
  return run(
      "aten::triplet_margin_loss",
      {arguments["anchor"], arguments["positive"], arguments["negative"], arguments["margin"],
       arguments["p"], arguments["eps"], arguments["swap"], reduction(arguments)});
}

Value triplet_margin_with_distance_loss(const BoundArguments& arguments) {
  if (!arguments["distance_function"].is_none()) {
    throw NeedsPythonError("a distance function given by the user needs a Python process");
  }
  if (arguments.number("margin") <= 0) throw UserError("margin must be greater than 0");
  const at::Tensor anchor = arguments.tensor("anchor");
  const at::Tensor positive = arguments.tensor("positive");
  const at::Tensor negative = arguments.tensor("negative");
  if (anchor.dim() != positive.dim() || anchor.dim() != negative.dim()) {
    throw UserError("anchor, positive and negative must have the same number of dimensions");
  }
  const at::Tensor near = run_tensor("aten::pairwise_distance", {anchor, positive});
  at::Tensor far = run_tensor("aten::pairwise_distance", {anchor, negative});
  if (arguments.truth("swap")) {
    far = far.minimum(run_tensor("aten::pairwise_distance", {positive, negative}));
  }
  const at::Tensor margin = near.add(tensor_or_wrapped(arguments["margin"]));
  return reduce_loss(margin.sub(far).clamp_min(0), arguments.text("reduction"));
}

constexpr std::string_view kPlainLoss =
    "input, target, size_average=None, reduce=None, reduction='mean'";
constexpr std::string_view kWeightedLoss =
    "input, target, weight=None, size_average=None, reduce=None, reduction='mean'";
constexpr std::string_view kTwoInputs =
    "input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean'";

constexpr std::array kMarginLossFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.margin_ranking_loss", kTwoInputs, margin_ranking_loss},
    {"torch.nn.functional.hinge_embedding_loss",
     "input, target, margin=1.0, size_average=None, reduce=None, reduction='mean'",
     hinge_embedding_loss},
    {"torch.nn.functional.cosine_embedding_loss", kTwoInputs, cosine_embedding_loss},
    {"torch.nn.functional.multilabel_margin_loss", kPlainLoss, multilabel_margin_loss},
    {"torch.nn.functional.soft_margin_loss", kPlainLoss, soft_margin_loss},
    {"torch.nn.functional.multilabel_soft_margin_loss", kWeightedLoss, multilabel_soft_margin_loss},
    {"torch.nn.functional.multi_margin_loss",
     "input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, "
     "reduction='mean'",
     multi_margin_loss},
    {"torch.nn.functional.triplet_margin_loss",
     "anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, "
     "reduce=None, reduction='mean'",
     triplet_margin_loss},
    {"torch.nn.functional.triplet_margin_with_distance_loss",
     "anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, "
     "reduction='mean'",
     triplet_margin_with_distance_loss},
});

}  // namespace

FunctionTable margin_loss_functions() { return kMarginLossFunctions; }

}  // namespace assay::aten
