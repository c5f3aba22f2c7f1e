// Functions that change the state of the process from inside a graph: gradient mode, autocast.
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

Value set_grad_enabled(const BoundArguments& arguments) {
  c10::GradMode::set_enabled(arguments.truth("mode"));
  return {};
}

// Autocast to another dtype is switched off with a warning, as is CUDA's where there is no GPU.
bool may_enable_autocast(at::DeviceType device, at::ScalarType dtype) {
  if (device == at::kCUDA) return at::globalContext().hasCUDA();
  return dtype == at::kBFloat16 || dtype == at::kHalf;
}

// Returns what _exit_autocast needs: the device and the state before.
Value enter_autocast(const BoundArguments& arguments) {
  const std::string device_text = arguments.text("device_type");
  const at::DeviceType device = c10::Device(device_text).type();
  const at::ScalarType previous_dtype = at::autocast::get_autocast_dtype(device);
  const bool previous_cache = at::autocast::is_autocast_cache_enabled();
  const Value& dtype = arguments["dtype"];
  const Value& cache = arguments["cache_enabled"];
  const at::ScalarType fast_dtype = dtype.is_none() ? previous_dtype : dtype_of(dtype);
  Value token = tuple_of({Operand(device_text.c_str()).value,
                          Operand(at::autocast::is_autocast_enabled(device)).value,
                          Operand(previous_dtype).value, Operand(previous_cache).value});
  at::autocast::set_autocast_enabled(
      device, arguments.truth("enabled") && may_enable_autocast(device, fast_dtype));
  at::autocast::set_autocast_dtype(device, fast_dtype);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_cache_enabled(cache.is_none() ? previous_cache : truth_of(cache));
  return token;
}

Value exit_autocast(const BoundArguments& arguments) {
  const std::vector<Value> token = unpack(arguments["mode"]);
  if (token.size() != 4)
    throw UserError("_exit_autocast() expects the result of _enter_autocast()");
  const at::DeviceType device = c10::Device(token[0].leaf.toStringRef()).type();
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device, token[1].leaf.toBool());
  at::autocast::set_autocast_dtype(device, dtype_of(token[2]));
  at::autocast::set_autocast_cache_enabled(token[3].leaf.toBool());
  return {};
}

Value do_nothing(const BoundArguments&) { return {}; }

constexpr std::string_view kEnterParameters =
    "device_type, dtype=None, enabled=True, cache_enabled=None";

// What compiled autograd calls in its graphs.
Value accumulate_gradient(const BoundArguments& arguments) {
  const at::Tensor variable = arguments.tensor("variable");
  const at::Tensor gradient = arguments.tensor("new_grad");
  const c10::AutoGradMode off(false);
  if (variable.grad().defined()) {
    variable.mutable_grad().add_(gradient);
  } else {
    variable.mutable_grad() = gradient.detach().clone();
  }
  return {};
}

// FSDP frees a buffer and takes its memory again; what is in it is written anew each time.
Value resize_storage(const BoundArguments&) { return {}; }

constexpr std::array kStateFunctions = std::to_array<TorchFunction>({
    {"torch._C._set_grad_enabled", "mode", set_grad_enabled},
    {"torch._C._log_api_usage_once", "event", do_nothing},
    {"torch.ops.inductor.accumulate_grad_.default", "variable, new_grad", accumulate_gradient},
    {"torch.ops.inductor.resize_storage_bytes_.default", "variable, new_size", resize_storage},
    // The context of a user's autograd.Function; in a graph nothing is kept in it.
    {"torch.autograd.function.FunctionCtx", "", do_nothing},
    {"torch._C._autograd._get_data_attr", "x",
     [](const BoundArguments& arguments) {
       return Operand(arguments.tensor("x").variable_data()).value;
     }},
    {"torch.amp.autocast_mode._enter_autocast", kEnterParameters, enter_autocast},
    {"torch.amp._enter_autocast", kEnterParameters, enter_autocast},
    {"torch.amp.autocast_mode._exit_autocast", "mode", exit_autocast},
    {"torch.amp._exit_autocast", "mode", exit_autocast},
});

}  // namespace

FunctionTable state_functions() { return kStateFunctions; }

}  // namespace assay::aten
