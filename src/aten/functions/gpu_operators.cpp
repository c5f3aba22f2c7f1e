// Operators of GPUs and other accelerators that have a counterpart on the CPU with the same
// results, and calls about devices that mean nothing on it. Convolutions, normalization, recurrent
// layers and attention are in files of their own.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// ---- products with a wider result than their factors: rounded once, at the end ----

Operand widened(const BoundArguments& arguments, std::string_view name) {
  return arguments.tensor(name).to(dtype_of(arguments["out_dtype"]));
}

Value mm_in_dtype(const BoundArguments& arguments) {
  return run("aten::mm", {widened(arguments, "self"), widened(arguments, "mat2")});
}

Value bmm_in_dtype(const BoundArguments& arguments) {
  return run("aten::bmm", {widened(arguments, "self"), widened(arguments, "mat2")});
}

Value addmm_in_dtype(const BoundArguments& arguments) {
  return run("aten::addmm",
             {widened(arguments, "self"), widened(arguments, "mat1"), widened(arguments, "mat2")},
             {{"beta", arguments["beta"]}, {"alpha", arguments["alpha"]}});
}

Value baddbmm_in_dtype(const BoundArguments& arguments) {
  return run(
      "aten::baddbmm",
      {widened(arguments, "self"), widened(arguments, "batch1"), widened(arguments, "batch2")},
      {{"beta", arguments["beta"]}, {"alpha", arguments["alpha"]}});
}

// ---- dropout; `p` is the share that is kept ----

Value fused_dropout(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  const double kept = arguments.number("p");
  const at::Tensor mask = run_tensor(
      "aten::bernoulli", {run_tensor("aten::empty_like", {self}, {{"dtype", at::kByte}}), kept},
      {{"generator", arguments["generator"]}});
  return tuple_of({Operand(self.mul(mask).mul(1.0 / kept)).value, Operand(mask).value});
}

Value masked_scale(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  return Operand(self.mul(arguments.tensor("mask")).mul(arguments.number("scale"))).value;
}

// ---- backward operators of MPS ----

Value linear_backward(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  const at::Tensor gradient = arguments.tensor("grad_output");
  const at::Tensor weight = arguments.tensor("weight");
  const at::Tensor rows = gradient.reshape({-1, weight.size(0)});
  const std::vector<Value> wanted = unpack(arguments["output_mask"]);
  std::vector<Value> results(3);
  if (truth_of(wanted[0])) results[0] = Operand(gradient.matmul(weight)).value;
  if (truth_of(wanted[1])) {
    results[1] = Operand(rows.t().mm(self.reshape({-1, weight.size(1)}))).value;
  }
  if (truth_of(wanted[2])) results[2] = Operand(rows.sum(0)).value;
  return tuple_of(std::move(results));
}

Value max_pool2d_backward(const BoundArguments& arguments) {
  const Operand kernel = arguments["kernel_size"];
  const Operand stride = arguments["stride"];
  const Operand padding = arguments["padding"];
  const Operand dilation = arguments["dilation"];
  const Operand ceil_mode = arguments["ceil_mode"];
  const std::vector<Value> pooled =
      unpack(run("aten::max_pool2d_with_indices",
                 {arguments["self"], kernel, stride, padding, dilation, ceil_mode}));
  return run("aten::max_pool2d_with_indices_backward",
             {arguments["grad_output"], arguments["self"], kernel, stride, padding, dilation,
              ceil_mode, pooled[1]});
}

Value same_tensor(const BoundArguments& arguments) { return arguments["self"]; }
Value same_contents(const BoundArguments& arguments) {
  return Operand(arguments.tensor("x").clone()).value;
}
Value do_nothing_on_cpu(const BoundArguments&) { return {}; }

Value cast_dtype(const BoundArguments& arguments) {
  return run("aten::_to_copy", {arguments["self"]}, {{"dtype", arguments["dtype"]}});
}

constexpr std::array kGpuFunctions = std::to_array<TorchFunction>({
    {"torch.ops.aten.mm.dtype", "self, mat2, out_dtype", mm_in_dtype},
    {"torch.ops.aten.bmm.dtype", "self, mat2, out_dtype", bmm_in_dtype},
    {"torch.ops.aten.addmm.dtype", "self, mat1, mat2, out_dtype, *, beta=1, alpha=1",
     addmm_in_dtype},
    {"torch.ops.aten.baddbmm.dtype", "self, batch1, batch2, out_dtype, *, beta=1, alpha=1",
     baddbmm_in_dtype},
    {"torch.ops.aten._fused_dropout.default", "self, p, generator=None", fused_dropout},
    {"torch.ops.aten._masked_scale.default", "self, mask, scale", masked_scale},
    {"torch.ops.aten.linear_backward.default", "self, grad_output, weight, output_mask",
     linear_backward},
    {"torch.ops.aten.max_pool2d_backward.default",
     "grad_output, self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False",
     max_pool2d_backward},
    {"torch.ops.aten._pin_memory.default", "self, device=None", same_tensor},
    {"torch.ops.aten.pin_memory.default", "self, device=None", same_tensor},
    {"torch.ops.aten.record_stream.default", "self, s", do_nothing_on_cpu},
    {"torch.ops._inductor_test.realize.default", "x", same_contents},
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
