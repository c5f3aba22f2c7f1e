// Prims that make tensors, view or change them as a whole, and Fourier transforms. Inductor's own
// graphs have few of them; those that were traced with prims are full of them.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// Prims say of every new tensor whether it requires a gradient.
Value with_gradient(at::Tensor made, const BoundArguments& arguments) {
  return Operand(made.requires_grad_(arguments.truth("requires_grad"))).value;
}

at::Tensor zeros(const BoundArguments& arguments, Operand sizes) {
  return run_tensor("aten::zeros", {sizes},
                    {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}});
}

// What is not initialized may as well be zero.
Value empty(const BoundArguments& arguments) {
  return with_gradient(zeros(arguments, arguments["shape"]), arguments);
}

Value empty_strided(const BoundArguments& arguments) {
  const at::Tensor made =
      run_tensor("aten::empty_strided", {arguments["shape"], arguments["strides"]},
                 {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}});
  return with_gradient(made.zero_(), arguments);
}

Value empty_permuted(const BoundArguments& arguments) {
  const at::Tensor made =
      run_tensor("aten::empty_permuted", {arguments["shape"], arguments["physical_layout"]},
                 {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}});
  return with_gradient(made.zero_(), arguments);
}

Value full(const BoundArguments& arguments) {
  return with_gradient(run_tensor("aten::full", {arguments["shape"], arguments["fill_value"]},
                                  {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}}),
                       arguments);
}

Value full_like(const BoundArguments& arguments) {
  return with_gradient(run_tensor("aten::full_like", {arguments["a"], arguments["fill_value"]},
                                  {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}}),
                       arguments);
}

Value scalar_tensor(const BoundArguments& arguments) {
  return run("aten::scalar_tensor", {arguments["s"]},
             {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}});
}

Value uniform(const BoundArguments& arguments) {
  const at::Tensor made =
      run_tensor("aten::empty_strided", {arguments["shape"], arguments["stride"]},
                 {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}});
  return run("aten::uniform_", {made, arguments["low"], arguments["high"]},
             {{"generator", arguments["generator"]}});
}

Value copy_strided(const BoundArguments& arguments) {
  const at::Tensor a = arguments.tensor("a");
  const at::Tensor made = run_tensor("aten::empty_strided", {a.sizes(), arguments["stride"]},
                                     {{"dtype", a.scalar_type()}});
  return Operand(made.copy_(a)).value;
}

Value copy_to(const BoundArguments& arguments) {
  return Operand(arguments.tensor("a").copy_(arguments.tensor("b"))).value;
}

Value fill(const BoundArguments& arguments) {
  return run("aten::fill", {arguments["self"], arguments["value"]});
}

Value resize(const BoundArguments& arguments) {
  return run("aten::resize_", {arguments["a"], arguments["shape"]});
}

Value as_strided(const BoundArguments& arguments) {
  return run("aten::as_strided",
             {arguments["a"], arguments["size"], arguments["stride"], arguments["storage_offset"]});
}

Value as_strided_scatter(const BoundArguments& arguments) {
  return run("aten::as_strided_scatter", {arguments["self"], arguments["src"], arguments["size"],
                                          arguments["stride"], arguments["storage_offset"]});
}

Value view_of_dtype(const BoundArguments& arguments) {
  return run("aten::view", {arguments["a"], arguments["dtype"]});
}

Value item(const BoundArguments& arguments) { return run("aten::item", {arguments["a"]}); }

Value conj(const BoundArguments& arguments) { return run("aten::conj", {arguments["a"]}); }

Value real(const BoundArguments& arguments) { return run("aten::real", {arguments["self"]}); }

Value imag(const BoundArguments& arguments) { return run("aten::imag", {arguments["self"]}); }

constexpr int kNotNormalized = 0;

Value fft_c2c(const BoundArguments& arguments) {
  return run("aten::_fft_c2c",
             {arguments["self"], arguments["dim"], kNotNormalized, arguments["forward"]});
}

Value fft_r2c(const BoundArguments& arguments) {
  return run("aten::_fft_r2c",
             {arguments["self"], arguments["dim"], kNotNormalized, arguments["onesided"]});
}

Value fft_c2r(const BoundArguments& arguments) {
  return run("aten::_fft_c2r",
             {arguments["self"], arguments["dim"], kNotNormalized, arguments["last_dim_size"]});
}

Value svd(const BoundArguments& arguments) {
  return run("aten::linalg_svd", {arguments["A"], arguments["full_matrices"]});
}

Value frexp(const BoundArguments& arguments) { return run("aten::frexp", {arguments["self"]}); }

constexpr std::array kTensorPrims = std::to_array<TorchFunction>({
    {"torch.ops.prims.empty.default", "shape, *, dtype, device, requires_grad", empty},
    {"torch.ops.prims.empty_strided.default", "shape, strides, *, dtype, device, requires_grad",
     empty_strided},
    {"torch.ops.prims.empty_permuted.default",
     "shape, physical_layout, *, dtype, device, requires_grad", empty_permuted},
    {"torch.ops.prims.full.default", "shape, fill_value, *, dtype, device, requires_grad", full},
    {"torch.ops.prims.full_like.default", "a, fill_value, *, dtype, device, requires_grad",
     full_like},
    {"torch.ops.prims.scalar_tensor.default", "s, *, dtype=None, device=None", scalar_tensor},
    {"torch.ops.prims.uniform.default",
     "shape, *, low, high, dtype, device, stride, generator=None", uniform},
    {"torch.ops.prims.copy_strided.default", "a, stride", copy_strided},
    {"torch.ops.prims.copy_to.default", "a, b", copy_to},
    {"torch.ops.prims.fill.default", "self, value", fill},
    {"torch.ops.prims.resize.default", "a, shape", resize},
    {"torch.ops.prims.as_strided.default", "a, size, stride, storage_offset", as_strided},
    {"torch.ops.prims.as_strided_scatter.default", "self, src, size, stride, storage_offset",
     as_strided_scatter},
    {"torch.ops.prims.view_of_dtype.default", "a, dtype", view_of_dtype},
    {"torch.ops.prims.item.default", "a", item},
    {"torch.ops.prims.conj.default", "a", conj},
    {"torch.ops.prims.real.default", "self", real},
    {"torch.ops.prims.imag.default", "self", imag},
    {"torch.ops.prims.fft_c2c.default", "self, *, dim, forward", fft_c2c},
    {"torch.ops.prims.fft_r2c.default", "self, *, dim, onesided", fft_r2c},
    {"torch.ops.prims.fft_c2r.default", "self, *, dim, last_dim_size", fft_c2r},
    {"torch.ops.prims.svd.default", "A, *, full_matrices", svd},
    {"torch.ops.prims.frexp.default", "self", frexp},
});

}  // namespace

FunctionTable tensor_prim_functions() { return kTensorPrims; }

}  // namespace assay::aten
