// Operators of GPUs and other accelerators that have a counterpart on the CPU with the same
// results, and calls about devices that mean nothing on it.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// (output, mean, inverse deviation, reserve): the fourth is cuDNN's own.
Value cudnn_batch_norm(const BoundArguments& arguments) {
  std::vector<Value> results =
      unpack(run("aten::native_batch_norm",
                 {arguments["input"], arguments["weight"], arguments["bias"],
                  arguments["running_mean"], arguments["running_var"], arguments["training"],
                  arguments["exponential_average_factor"], arguments["epsilon"]}));
  results.push_back(run("aten::empty", {std::vector<std::int64_t>{0}}, {{"dtype", at::kByte}}));
  return tuple_of(std::move(results));
}

Value cudnn_batch_norm_backward(const BoundArguments& arguments) {
  const Value mask = list_of({Operand(true).value, Operand(true).value, Operand(true).value});
  return run("aten::native_batch_norm_backward",
             {arguments["grad_output"], arguments["input"], arguments["weight"],
              arguments["running_mean"], arguments["running_var"], arguments["save_mean"],
              arguments["save_var"], true, arguments["epsilon"], mask});
}

Value same_tensor(const BoundArguments& arguments) { return arguments["self"]; }
Value do_nothing_on_cpu(const BoundArguments&) { return {}; }

Value cast_dtype(const BoundArguments& arguments) {
  return run("aten::_to_copy", {arguments["self"]}, {{"dtype", arguments["dtype"]}});
}

constexpr std::string_view kBatchNorm =
    "input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon";
constexpr std::string_view kBatchNormBackward =
    "input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon, "
    "reserveSpace=None";

constexpr std::array kGpuFunctions = std::to_array<TorchFunction>({
    {"torch.ops.aten.cudnn_batch_norm.default", kBatchNorm, cudnn_batch_norm},
    {"torch.ops.aten.cudnn_batch_norm_backward.default", kBatchNormBackward,
     cudnn_batch_norm_backward},
    {"torch.ops.aten._pin_memory.default", "self, device=None", same_tensor},
    {"torch.ops.aten.pin_memory.default", "self, device=None", same_tensor},
    {"torch.ops.aten.record_stream.default", "self, s", do_nothing_on_cpu},
    {"torch.ops.npu.npu_dtype_cast.default", "self, dtype, input_dtype=None", cast_dtype},
    {"torch.ops.npu._npu_dtype_cast.default", "self, dtype, input_dtype=None", cast_dtype},
    {"torch.cuda.synchronize", "device=None", do_nothing_on_cpu},
    {"torch._C._cuda_exchangeDevice", "device", do_nothing_on_cpu},
    {"torch._C._cuda_maybeExchangeDevice", "device", do_nothing_on_cpu},
    {"torch.cuda._exchange_device", "device", do_nothing_on_cpu},
    {"torch.cuda._maybe_exchange_device", "device", do_nothing_on_cpu},
});

constexpr std::array kGpuMethods = std::to_array<TorchFunction>({
    {"pin_memory", "self, device=None", same_tensor},
    {"record_stream", "self, stream", do_nothing_on_cpu},
});

}  // namespace

FunctionTable gpu_functions() { return kGpuFunctions; }
FunctionTable gpu_methods() { return kGpuMethods; }

}  // namespace assay::aten
