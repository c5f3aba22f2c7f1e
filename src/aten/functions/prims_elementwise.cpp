// torch.ops.prims that compute element by element or reduce, and have the name of the ATen operator
// that computes the same, or nearly. Decompositions of PyTorch 1.13 to 2.1 leave many in graphs.
#include <algorithm>
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// An operator's name as a template argument.
template <std::size_t N>
struct OperatorName {
  consteval OperatorName(const char (&name)[N]) { std::copy_n(name, N, text); }  // NOLINT
  char text[N];  // NOLINT: a std::array would not do as a template argument
};

template <OperatorName Op>
Value of_one(const BoundArguments& arguments) {
  return run(Op.text, {arguments["self"]});
}

template <OperatorName Op>
Value of_two(const BoundArguments& arguments) {
  return run(Op.text, {arguments["self"], arguments["other"]});
}

template <OperatorName Op>
Value along_dims(const BoundArguments& arguments) {
  return run(Op.text, {arguments["inp"], arguments["dims"]});
}

Value sum_of(const BoundArguments& arguments) {
  return run("aten::sum", {arguments["inp"], arguments["dims"], false},
             {{"dtype", arguments["output_dtype"]}});
}

// aten::prod takes one dimension; those that are taken first are behind the others.
Value product_of(const BoundArguments& arguments) {
  at::Tensor result = arguments.tensor("inp");
  std::vector<std::int64_t> dims = integers_of(arguments["dims"]);
  for (std::int64_t& dim : dims) dim += dim < 0 ? result.dim() : 0;
  std::ranges::sort(dims, std::ranges::greater());
  for (const std::int64_t dim : dims) result = run_tensor("aten::prod", {result, dim});
  return Operand(result).value;
}

Value variance_of(const BoundArguments& arguments) {
  return run("aten::var", {arguments["inp"], arguments["dims"]},
             {{"correction", arguments["correction"]}});
}

Value squeezed(const BoundArguments& arguments) {
  return run("aten::squeeze", {arguments["a"], arguments["dimensions"]});
}

Value with_dims(const BoundArguments& arguments) {
  at::Tensor result = arguments.tensor("a");
  std::vector<std::int64_t> dims = integers_of(arguments["dimensions"]);
  std::ranges::sort(dims);
  for (const std::int64_t dim : dims) result = result.unsqueeze(dim);
  return Operand(result).value;
}

// From `start` to `end`, which is included.
Value collapsed(const BoundArguments& arguments) {
  return run("aten::flatten",
             {arguments["a"], arguments.integer("start"), arguments.integer("end")});
}

Value split(const BoundArguments& arguments) {
  const at::Tensor tensor = arguments.tensor("a");
  const std::int64_t dim = arguments.integer("dim");
  const std::int64_t outer = arguments.integer("outer_length");
  return run("aten::unflatten", {tensor, dim, std::vector<std::int64_t>{outer, -1}});
}

Value sliced(const BoundArguments& arguments) {
  at::Tensor result = arguments.tensor("a");
  const std::vector<std::int64_t> starts = integers_of(arguments["start_indices"]);
  const std::vector<std::int64_t> ends = integers_of(arguments["limit_indices"]);
  const std::vector<std::int64_t> steps = arguments["strides"].is_none()
                                              ? std::vector<std::int64_t>(starts.size(), 1)
                                              : integers_of(arguments["strides"]);
  for (std::size_t dim = 0; dim < starts.size(); ++dim) {
    result = result.slice(static_cast<std::int64_t>(dim), starts[dim], ends.at(dim), steps.at(dim));
  }
  return Operand(result).value;
}

// PyTorch 2.0's dropout. The seed is one for a device, and the offset says where in its numbers a
// call begins; both only make a GPU draw the same again.
Value seed_like(const BoundArguments& arguments) {
  return run("aten::zeros", {std::vector<std::int64_t>{}},
             {{"dtype", at::kInt}, {"device", arguments.tensor("input").device()}});
}
Value random_like(const BoundArguments& arguments) {
  return run("aten::rand_like", {arguments["input"]});
}

constexpr std::string_view kDims = "inp, dims";

constexpr std::array kElementwisePrims = std::to_array<TorchFunction>({
    {"torch.ops.prims.acos.default", "self", of_one<"aten::acos">},
    {"torch.ops.prims.acosh.default", "self", of_one<"aten::acosh">},
    {"torch.ops.prims.asin.default", "self", of_one<"aten::asin">},
    {"torch.ops.prims.asinh.default", "self", of_one<"aten::asinh">},
    {"torch.ops.prims.atan.default", "self", of_one<"aten::atan">},
    {"torch.ops.prims.atanh.default", "self", of_one<"aten::atanh">},
    {"torch.ops.prims.bitwise_not.default", "self", of_one<"aten::bitwise_not">},
    {"torch.ops.prims.ceil.default", "self", of_one<"aten::ceil">},
    {"torch.ops.prims.clone.default", "self", of_one<"aten::clone">},
    {"torch.ops.prims.conj_physical.default", "self", of_one<"aten::conj_physical">},
    {"torch.ops.prims.cosh.default", "self", of_one<"aten::cosh">},
    {"torch.ops.prims.digamma.default", "self", of_one<"aten::digamma">},
    {"torch.ops.prims.erf_inv.default", "self", of_one<"aten::erfinv">},
    {"torch.ops.prims.erfc.default", "self", of_one<"aten::erfc">},
    {"torch.ops.prims.exp2.default", "self", of_one<"aten::exp2">},
    {"torch.ops.prims.expm1.default", "self", of_one<"aten::expm1">},
    {"torch.ops.prims.floor.default", "self", of_one<"aten::floor">},
    {"torch.ops.prims.isfinite.default", "self", of_one<"aten::isfinite">},
    {"torch.ops.prims.lgamma.default", "self", of_one<"aten::lgamma">},
    {"torch.ops.prims.log10.default", "self", of_one<"aten::log10">},
    {"torch.ops.prims.log1p.default", "self", of_one<"aten::log1p">},
    {"torch.ops.prims.log2.default", "self", of_one<"aten::log2">},
    {"torch.ops.prims.round.default", "self", of_one<"aten::round">},
    {"torch.ops.prims.signbit.default", "self", of_one<"aten::signbit">},
    {"torch.ops.prims.sinh.default", "self", of_one<"aten::sinh">},
    {"torch.ops.prims.tan.default", "self", of_one<"aten::tan">},
    {"torch.ops.prims.trunc.default", "self", of_one<"aten::trunc">},
    {"torch.ops.prims.bessel_i0.default", "self", of_one<"aten::i0">},
    {"torch.ops.prims.bessel_i0e.default", "self", of_one<"aten::special_i0e">},
    {"torch.ops.prims.bessel_i1.default", "self", of_one<"aten::special_i1">},
    {"torch.ops.prims.bessel_i1e.default", "self", of_one<"aten::special_i1e">},
    {"torch.ops.prims.bessel_j0.default", "self", of_one<"aten::special_bessel_j0">},
    {"torch.ops.prims.bessel_j1.default", "self", of_one<"aten::special_bessel_j1">},
    {"torch.ops.prims.erfcx.default", "self", of_one<"aten::special_erfcx">},
    {"torch.ops.prims.ndtri.default", "self", of_one<"aten::special_ndtri">},
    {"torch.ops.prims.spherical_bessel_j0.default", "self",
     of_one<"aten::special_spherical_bessel_j0">},
    {"torch.ops.prims.igamma.default", "self, other", of_two<"aten::igamma">},
    {"torch.ops.prims.igammac.default", "self, other", of_two<"aten::igammac">},
    {"torch.ops.prims.zeta.default", "self, other", of_two<"aten::special_zeta">},
    {"torch.ops.prims.atan2.default", "self, other", of_two<"aten::atan2">},
    {"torch.ops.prims.bitwise_and.default", "self, other", of_two<"aten::bitwise_and">},
    {"torch.ops.prims.bitwise_or.default", "self, other", of_two<"aten::bitwise_or">},
    {"torch.ops.prims.bitwise_xor.default", "self, other", of_two<"aten::bitwise_xor">},
    {"torch.ops.prims.fmax.default", "self, other", of_two<"aten::fmax">},
    {"torch.ops.prims.fmin.default", "self, other", of_two<"aten::fmin">},
    {"torch.ops.prims.fmod.default", "self, other", of_two<"aten::fmod">},
    {"torch.ops.prims.gcd.default", "self, other", of_two<"aten::gcd">},
    {"torch.ops.prims.hypot.default", "self, other", of_two<"aten::hypot">},
    {"torch.ops.prims.maximum.default", "self, other", of_two<"aten::maximum">},
    {"torch.ops.prims.minimum.default", "self, other", of_two<"aten::minimum">},
    {"torch.ops.prims.nextafter.default", "self, other", of_two<"aten::nextafter">},
    {"torch.ops.prims.pow.default", "self, other", of_two<"aten::pow">},
    {"torch.ops.prims.remainder.default", "self, other", of_two<"aten::remainder">},
    {"torch.ops.prims.shift_left.default", "self, other", of_two<"aten::bitwise_left_shift">},
    {"torch.ops.prims.shift_right_arithmetic.default", "self, other",
     of_two<"aten::bitwise_right_shift">},
    {"torch.ops.prims.amax.default", kDims, along_dims<"aten::amax">},
    {"torch.ops.prims.amin.default", kDims, along_dims<"aten::amin">},
    {"torch.ops.prims.sum.default", "inp, dims, *, output_dtype=None", sum_of},
    {"torch.ops.prims.prod.default", "inp, dims, *, output_dtype=None", product_of},
    {"torch.ops.prims.var.default", "inp, dims, correction=1, *, output_dtype=None", variance_of},
    {"torch.ops.prims.squeeze.default", "a, dimensions", squeezed},
    {"torch.ops.prims.expand_dims.default", "a, dimensions", with_dims},
    {"torch.ops.prims.collapse.default", "a, start, end", collapsed},
    {"torch.ops.prims.collapse_view.default", "a, start, end", collapsed},
    {"torch.ops.prims.split_dim.default", "a, dim, outer_length", split},
    {"torch.ops.prims.slice.default", "a, start_indices, limit_indices, strides=None", sliced},
    {"torch.ops.prims.philox_seed_like.default", "input", seed_like},
    {"torch.ops.prims.philox_rand_like.default", "input, seed, offset", random_like},
});

}  // namespace

FunctionTable elementwise_prim_functions() { return kElementwisePrims; }

}  // namespace assay::aten
