// torch.func.grad, vjp and jvp as Dynamo leaves them in a graph: a level of autograd is entered,
// tensors are wrapped for it, and what is wanted of the level is unwrapped before it is left. The
// levels are libtorch's own.
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>
#include <ATen/ops/_make_dual.h>
#include <ATen/ops/_unpack_dual.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

namespace functorch = at::functorch;
namespace forward_ad = torch::autograd::forward_ad;

Value enter_grad(const BoundArguments&) {
  return Operand(functorch::initAndPushDynamicLayer(functorch::TransformType::Grad, std::nullopt,
                                                    std::nullopt, at::GradMode::is_enabled()))
      .value;
}

Value enter_jvp(const BoundArguments&) {
  const bool before = c10::AutogradState::get_tls_state().get_fw_grad_mode();
  return Operand(functorch::initAndPushDynamicLayer(functorch::TransformType::Jvp, std::nullopt,
                                                    std::nullopt, std::nullopt, before))
      .value;
}

Value leave(functorch::TransformType kind, const BoundArguments& arguments) {
  const auto layer = functorch::maybeCurrentDynamicLayer();
  if (!layer || layer->key() != kind) {
    throw UserError(std::string(arguments.function()) + "() leaves a level that is not entered");
  }
  return Operand(functorch::popDynamicLayerAndDeleteMetadata().layerId()).value;
}

Value leave_grad(const BoundArguments& arguments) {
  return leave(functorch::TransformType::Grad, arguments);
}

Value leave_jvp(const BoundArguments& arguments) {
  return leave(functorch::TransformType::Jvp, arguments);
}

Value wrap(const BoundArguments& arguments) {
  const std::int64_t level = arguments.integer("level");
  if (level < 1 || level > static_cast<std::int64_t>(functorch::getDynamicLayerStack().size())) {
    throw UserError("the level " + std::to_string(level) + " is not entered here");
  }
  return Operand(functorch::makeTensorWrapper(arguments.tensor("self"), level)).value;
}

// A tensor that does not depend on the level is not wrapped for it.
Value unwrap(const BoundArguments& arguments) {
  const at::Tensor tensor = arguments.tensor("self");
  const functorch::TensorWrapper* wrapper = functorch::maybeGetTensorWrapper(tensor);
  const bool is_of_level = wrapper != nullptr && wrapper->level() == arguments.integer("level");
  return Operand(is_of_level ? wrapper->value() : tensor).value;
}

Value allow_requires_grad(const BoundArguments& arguments) {
  functorch::setInplaceRequiresGradAllowed(arguments.truth("allowed"));
  return {};
}

Value require_grad(const BoundArguments& arguments) {
  return Operand(arguments.tensor("x").requires_grad_()).value;
}

// As torch._functorch.eager_transforms has it: outputs without a gradient are left out, and an
// input that none depends on has one of zeros.
Value gradients(const BoundArguments& arguments) {
  const std::vector<at::Tensor> inputs = tensors_of(arguments["inputs"]);
  const bool has_given = !arguments["grad_outputs"].is_none();
  const std::vector<at::Tensor> given =
      has_given ? tensors_of(arguments["grad_outputs"]) : std::vector<at::Tensor>();
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> wanted;
  std::size_t i = 0;
  for (const at::Tensor& output : tensors_of(arguments["outputs"])) {
    if (output.requires_grad()) {
      outputs.push_back(output);
      if (has_given) wanted.push_back(given.at(i));
    }
    ++i;
  }
  std::vector<at::Tensor> found(inputs.size());
  if (!outputs.empty()) {
    found = torch::autograd::grad(outputs, inputs, wanted, arguments.truth("retain_graph"),
                                  arguments.truth("create_graph"), /*allow_unused=*/true);
  }
  std::vector<Value> results;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    results.push_back(Operand(found[k].defined() ? found[k] : at::zeros_like(inputs[k])).value);
  }
  return tuple_of(std::move(results));
}

Value set_forward_mode(const BoundArguments& arguments) {
  c10::AutogradState::get_tls_state().set_fw_grad_mode(arguments.truth("mode"));
  return {};
}

Value enter_dual_level(const BoundArguments&) {
  return Operand(static_cast<std::int64_t>(forward_ad::enter_dual_level())).value;
}

Value exit_dual_level(const BoundArguments& arguments) {
  forward_ad::exit_dual_level(static_cast<std::uint64_t>(arguments.integer("level")));
  return {};
}

Value make_dual(const BoundArguments& arguments) {
  return Operand(at::_make_dual(arguments.tensor("tensor"), arguments.tensor("tangent"),
                                arguments.integer("level")))
      .value;
}

// The tangent is None where there is none.
Value unpack_dual(const BoundArguments& arguments) {
  const auto [primal, tangent] =
      at::_unpack_dual(arguments.tensor("tensor"), arguments.integer("level"));
  Value second = tangent.defined() ? Operand(tangent).value : Value();
  return tuple_of({Operand(primal).value, std::move(second)});
}

Value nothing(const BoundArguments&) { return {}; }

constexpr std::string_view kGradients =
    "outputs, inputs, grad_outputs=None, retain_graph=False, create_graph=True";

constexpr std::array kGradLevelFunctions = std::to_array<TorchFunction>({
    {"torch._C._functorch._grad_increment_nesting", "", enter_grad},
    {"torch._C._functorch._grad_decrement_nesting", "", leave_grad},
    {"torch._functorch.predispatch._grad_increment_nesting", "", enter_grad},
    {"torch._functorch.predispatch._grad_decrement_nesting", "", leave_grad},
    {"torch._C._functorch._jvp_increment_nesting", "", enter_jvp},
    {"torch._C._functorch._jvp_decrement_nesting", "", leave_jvp},
    {"torch._functorch.predispatch._jvp_increment_nesting", "", enter_jvp},
    {"torch._functorch.predispatch._jvp_decrement_nesting", "", leave_jvp},
    {"torch._C._functorch._wrap_for_grad", "self, level", wrap},
    {"torch._functorch.predispatch._wrap_for_grad", "self, level", wrap},
    {"torch._C._functorch._unwrap_for_grad", "self, level", unwrap},
    {"torch._functorch.predispatch._unwrap_for_grad", "self, level", unwrap},
    {"torch._C._functorch.set_inplace_requires_grad_allowed", "allowed", allow_requires_grad},
    {"torch._functorch.eager_transforms._set_tensor_requires_grad", "x", require_grad},
    {"torch._functorch.eager_transforms._autograd_grad", kGradients, gradients},
    {"torch._C._set_fwd_grad_enabled", "mode", set_forward_mode},
    {"torch._C._enter_dual_level", "", enter_dual_level},
    {"torch._C._exit_dual_level", "level", exit_dual_level},
    {"torch._functorch.predispatch._enter_dual_level", "", enter_dual_level},
    {"torch._functorch.predispatch._exit_dual_level", "level", exit_dual_level},
    {"torch._functorch.predispatch._make_dual", "tensor, tangent, level=0", make_dual},
    {"torch._functorch.predispatch._unpack_dual", "tensor, level=0", unpack_dual},
    {"torch._make_dual", "tensor, tangent, level", make_dual},
    {"torch._unpack_dual", "tensor, level", unpack_dual},
    // No hook is set in a graph's run, and there is nothing in Python to load.
    {"torch._C._autograd._saved_tensors_hooks_disable", "message", nothing},
    {"torch._C._autograd._saved_tensors_hooks_enable", "", nothing},
    {"torch.autograd.forward_ad._maybe_load_decompositions", "", nothing},
});

}  // namespace

FunctionTable grad_level_functions() { return kGradLevelFunctions; }

}  // namespace assay::aten
