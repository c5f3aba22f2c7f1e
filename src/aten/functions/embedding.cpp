// Embeddings of torch.nn.functional: the operators take the weight first.
#include <c10/core/GradMode.h>

#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// Rows longer than max_norm are shortened in the weight itself, out of autograd's sight.
void renormalise(const BoundArguments& arguments, const at::Tensor& weight,
                 const at::Tensor& input) {
  if (arguments["max_norm"].is_none()) return;
  const c10::AutoGradMode no_grad(false);
  run("aten::embedding_renorm_",
      {weight, input, arguments.number("max_norm"), arguments.number("norm_type")});
}

std::int64_t padding_row(const Value& padding_idx, const at::Tensor& weight) {
  if (padding_idx.is_none()) return -1;
  const std::int64_t row = padding_idx.leaf.toInt();
  const std::int64_t rows = weight.size(0);
  if (row > 0 ? row >= rows : row < -rows) {
    throw UserError("Padding_idx must be within num_embeddings");
  }
  return row < 0 ? rows + row : row;
}

Value embedding(const BoundArguments& arguments) {
  at::Tensor input = arguments.tensor("input");
  const at::Tensor weight = arguments.tensor("weight");
  const std::int64_t padding = padding_row(arguments["padding_idx"], weight);
  if (!arguments["max_norm"].is_none()) input = input.contiguous();
  renormalise(arguments, weight, input);
  return run("aten::embedding",
             {weight, input, padding, arguments["scale_grad_by_freq"], arguments["sparse"]});
}

std::int64_t bag_mode(const BoundArguments& arguments) {
  const std::string mode = arguments.text("mode");
  if (mode == "sum") return 0;
  if (mode == "mean") return 1;
  if (mode != "max") throw UserError("mode has to be one of sum, mean or max");
  if (arguments.truth("scale_grad_by_freq")) {
    throw UserError("max mode does not support scaling the gradient by the frequency");
  }
  if (arguments.truth("sparse")) throw UserError("max mode does not support sparse weights");
  return 2;
}

Value embedding_bag(const BoundArguments& arguments) {
  at::Tensor input = arguments.tensor("input");
  at::Tensor weight = arguments.tensor("weight");
  // The order of the first versions of PyTorch is still understood.
  if (weight.scalar_type() == at::kLong && input.is_floating_point()) std::swap(input, weight);
  std::optional<at::Tensor> offsets = optional_tensor(arguments["offsets"]);
  std::optional<at::Tensor> weights = optional_tensor(arguments["per_sample_weights"]);
  bool include_last_offset = arguments.truth("include_last_offset");
  if (weights && input.sizes() != weights->sizes()) {
    throw UserError("embedding_bag: per_sample_weights must have the same shape as the input");
  }
  if (weight.dim() != 2) throw UserError("weight has to be a 2D Tensor");
  if (input.dim() == 2) {
    if (offsets) throw UserError("if input is 2D, then offsets has to be None");
    // Every row is a bag.
    offsets = run_tensor("aten::arange", {0, input.numel(), input.size(1)},
                         {{"dtype", input.scalar_type()}, {"device", input.device()}});
    include_last_offset = false;
    input = input.reshape(-1);
    if (weights) weights = weights->reshape(-1);
  } else if (input.dim() != 1) {
    throw UserError("input has to be 1D or 2D Tensor");
  } else if (!offsets || offsets->dim() != 1) {
    throw UserError("offsets has to be a 1D Tensor");
  }
  const std::int64_t mode = bag_mode(arguments);
  renormalise(arguments, weight, input);
  if (weights && mode != 0) {
    throw UserError("embedding_bag: per_sample_weights is only supported for mode='sum'");
  }
  const Value results =
      run("aten::embedding_bag",
          {weight, input, *offsets, arguments["scale_grad_by_freq"], mode, arguments["sparse"],
           optional_operand(weights), include_last_offset, arguments["padding_idx"]});
  return unpack(results).front();
}

constexpr std::array kEmbeddingFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.embedding",
     "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
     "sparse=False",
     embedding},
    {"torch.nn.functional.embedding_bag",
     "input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, "
     "mode='mean', sparse=False, per_sample_weights=None, include_last_offset=False, "
     "padding_idx=None",
     embedding_bag},
});

}  // namespace

FunctionTable embedding_functions() { return kEmbeddingFunctions; }

}  // namespace assay::aten
