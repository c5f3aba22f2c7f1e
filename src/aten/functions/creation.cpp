// Functions that make tensors: from data, and the factories, whose Python forms take
// `requires_grad`, which no operator has.
#include <ATen/core/LegacyTypeDispatch.h>

#include <array>

#include "aten/functions/forwarded.h"
#include "aten/functions/operand.h"
#include "aten/functions/tables.h"
#include "aten/functions/tensor_from_data.h"
#include "aten/trace_keys.h"

namespace assay::aten {

namespace {

Value with_grad(Value made, const BoundArguments& arguments) {
  if (arguments.truth("requires_grad")) tensor_of(made).set_requires_grad(true);
  return made;
}

std::string_view base_name(std::string_view function) {
  return function.substr(function.rfind('.') + 1);  // npos + 1 is 0
}

// Python's factories run below autograd: what they return has no history even where the operator
// would see an input that requires gradients (`randint_like`).
Value run_factory(const BoundArguments& arguments) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return with_grad(forward_to("aten::" + std::string(base_name(arguments.function())), arguments),
                   arguments);
}

Value run_method_factory(const BoundArguments& arguments) {
  return with_grad(
      forward_to("aten::" + std::string(arguments.function()), arguments, Dialect::method),
      arguments);
}

// Always a copy, as torch.tensor promises.
Value make_tensor(const Value& data, std::optional<at::ScalarType> dtype,
                  std::optional<c10::Device> device) {
  if (data.is_tensor()) {
    const at::Tensor source = data.leaf.toTensor().detach();
    return c10::IValue(source.to(device.value_or(source.device()),
                                 dtype.value_or(source.scalar_type()), false, true));
  }
  at::Tensor made = tensor_from_data(data, dtype);
  if (device && !device->is_cpu()) made = made.to(*device);
  Value lifted = run("aten::lift_fresh", {made});
  // A trace keeps the tensor as a constant of the graph, which nobody may write to or return.
  return is_traced_by_thread() ? run("aten::clone", {std::move(lifted)}) : lifted;
}

std::optional<at::ScalarType> optional_dtype(const Value& value) {
  return value.is_none() ? std::nullopt : std::optional(dtype_of(value));
}

std::optional<c10::Device> optional_device(const Value& value) {
  return value.is_none() ? std::nullopt : std::optional(device_of(value));
}

Value tensor(const BoundArguments& arguments) {
  return with_grad(make_tensor(arguments["data"], optional_dtype(arguments["dtype"]),
                               optional_device(arguments["device"])),
                   arguments);
}

Value new_tensor(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  return with_grad(make_tensor(arguments["data"],
                               optional_dtype(arguments["dtype"]).value_or(self.scalar_type()),
                               optional_device(arguments["device"]).value_or(self.device())),
                   arguments);
}

Value as_tensor(const BoundArguments& arguments) {
  const Value& data = arguments["data"];
  const auto dtype = optional_dtype(arguments["dtype"]);
  const auto device = optional_device(arguments["device"]);
  if (!data.is_tensor()) return make_tensor(data, dtype, device);
  const at::Tensor& source = data.leaf.toTensor();
  return c10::IValue(
      source.to(device.value_or(source.device()), dtype.value_or(source.scalar_type())));
}

// Operators return a dtype as a number; only the schema tells.
Value returns_dtype(const BoundArguments& arguments) {
  const Value number =
      forward_to("aten::" + std::string(base_name(arguments.function())), arguments);
  return Value(Value::Kind::dtype, number.leaf);
}

constexpr std::string_view kFactory = "*args, requires_grad=False, **kwargs";

constexpr std::array kCreationFunctions = std::to_array<TorchFunction>({
    {"torch.tensor", "data, *, dtype=None, device=None, requires_grad=False, pin_memory=False",
     tensor},
    {"torch.as_tensor", "data, dtype=None, device=None", as_tensor},
    {"torch.zeros", kFactory, run_factory},
    {"torch.ones", kFactory, run_factory},
    {"torch.empty", kFactory, run_factory},
    {"torch.full", kFactory, run_factory},
    {"torch.rand", kFactory, run_factory},
    {"torch.randn", kFactory, run_factory},
    {"torch.randint", kFactory, run_factory},
    {"torch.randperm", kFactory, run_factory},
    {"torch.arange", kFactory, run_factory},
    {"torch.linspace", kFactory, run_factory},
    {"torch.logspace", kFactory, run_factory},
    {"torch.eye", kFactory, run_factory},
    {"torch.scalar_tensor", kFactory, run_factory},
    {"torch.empty_strided", kFactory, run_factory},
    {"torch.empty_permuted", kFactory, run_factory},
    {"torch.zeros_like", kFactory, run_factory},
    {"torch.ones_like", kFactory, run_factory},
    {"torch.empty_like", kFactory, run_factory},
    {"torch.full_like", kFactory, run_factory},
    {"torch.rand_like", kFactory, run_factory},
    {"torch.randn_like", kFactory, run_factory},
    {"torch.randint_like", kFactory, run_factory},
    {"torch.hann_window", kFactory, run_factory},
    {"torch.hamming_window", kFactory, run_factory},
    {"torch.bartlett_window", kFactory, run_factory},
    {"torch.blackman_window", kFactory, run_factory},
    {"torch.kaiser_window", kFactory, run_factory},
    {"torch.result_type", kEverything, returns_dtype},
    {"torch.promote_types", kEverything, returns_dtype},
});

constexpr std::array kCreationMethods = std::to_array<TorchFunction>({
    {"new_tensor",
     "self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False",
     new_tensor},
    {"new_zeros", kFactory, run_method_factory},
    {"new_ones", kFactory, run_method_factory},
    {"new_empty", kFactory, run_method_factory},
    {"new_full", kFactory, run_method_factory},
    {"new_empty_strided", kFactory, run_method_factory},
});

}  // namespace

FunctionTable creation_functions() { return kCreationFunctions; }
FunctionTable creation_methods() { return kCreationMethods; }

}  // namespace assay::aten
