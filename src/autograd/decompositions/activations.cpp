// Activation functions.
#include <ATen/Context.h>
#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_prelu_kernel_ops.h>
#include <ATen/ops/celu_ops.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/glu_ops.h>
#include <ATen/ops/hardshrink_ops.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/hardswish_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/softshrink_ops.h>
#include <ATen/ops/threshold_ops.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <numbers>
#include <string_view>
#include <tuple>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Scalar;
using at::Tensor;

// Whether ATen asks oneDNN for it.
bool is_gelu_of_onednn(const Tensor& self) {
  const bool has_kernel =
      self.scalar_type() == at::kFloat ||
      (self.scalar_type() == at::kBFloat16 && at::get_cpu_capability() == "AVX512");
  return has_kernel && at::globalContext().userEnabledMkldnn() && self.is_contiguous() &&
         self.numel() > 1;
}

Tensor gelu(const Tensor& self, std::string_view approximate) {
  const Tensor x = widen(self);
  Tensor gate;
  if (approximate == "tanh") {
    const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    gate = ((x + x * x * x * 0.044715) * beta).tanh();
  } else {
    gate = (x * (1 / std::numbers::sqrt2)).erf();
    // Whose result for infinity is NaN.
    if (is_gelu_of_onednn(self)) gate = gate + (x - x);
  }
  return (x * 0.5 * (gate + 1)).to(self.scalar_type());
}

Tensor silu(const Tensor& self) {
  const Tensor x = widen(self);
  return (x / (x.neg().exp() + 1)).to(self.scalar_type());
}

Tensor mish(const Tensor& self) {
  const Tensor x = widen(self);
  return (x * x.exp().log1p().tanh()).to(self.scalar_type());
}

Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope) {
  const Tensor x = widen(self);
  return at::where(x > 0, x, x * negative_slope).to(self.scalar_type());
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
  const Tensor x = widen(self);
  return at::where(x > 0, x, widen(weight) * x).to(self.scalar_type());
}

Tensor elu(const Tensor& self, const Scalar& alpha, const Scalar& scale,
           const Scalar& input_scale) {
  const Tensor x = widen(self);
  const Tensor negative = (x * input_scale).expm1() * (alpha.to<double>() * scale.to<double>());
  return at::where(x > 0, x * scale, negative).to(self.scalar_type());
}

Tensor celu(const Tensor& self, const Scalar& alpha) {
  TORCH_CHECK(alpha.to<double>() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return elu(self, alpha, 1, 1 / alpha.to<double>());
}

Tensor hardtanh(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  // Of integers it gives integers, which `clamp` does only for bounds that are.
  if (at::isIntegralType(self.scalar_type(), false)) {
    return self.clamp(min_val.to<std::int64_t>(), max_val.to<std::int64_t>());
  }
  return self.clamp(min_val, max_val);
}

Tensor hardswish(const Tensor& self) {
  const Tensor x = widen(self);
  return (x * (x + 3).clamp(0, 6) / 6).to(self.scalar_type());
}

Tensor hardsigmoid(const Tensor& self) {
  return ((widen(self) + 3).clamp(0, 6) / 6).to(self.scalar_type());
}

Tensor softplus(const Tensor& self, const Scalar& beta, const Scalar& threshold) {
  const Tensor x = widen(self);
  const Tensor scaled = x * beta;
  return at::where(scaled > threshold, x, scaled.exp().log1p() / beta).to(self.scalar_type());
}

Tensor threshold(const Tensor& self, const Scalar& limit, const Scalar& value) {
  return at::where(self <= limit, constant(self, value), self);
}

Tensor hardshrink(const Tensor& self, const Scalar& lambd) {
  const double limit = rounded(lambd.to<double>(), self.scalar_type());
  const Tensor x = widen(self);
  return zero_where((x >= -limit).logical_and(x <= limit), self);
}

Tensor softshrink(const Tensor& self, const Scalar& lambd) {
  const Tensor x = widen(self);
  // Zero times x and not zero, so that NaN stays NaN.
  const Tensor low = at::where(x < -lambd.to<double>(), x + lambd, x * 0);
  return at::where(x > lambd, x - lambd, low).to(self.scalar_type());
}

Tensor glu(const Tensor& self, std::int64_t dim) {
  TORCH_CHECK(self.size(dim) % 2 == 0, "Halving dimension must be even, but dimension ", dim,
              " is size ", self.size(dim));
  const std::int64_t half = self.size(dim) / 2;
  const Tensor value = widen(self.slice(dim, 0, half));
  const Tensor gate = widen(self.slice(dim, half, 2 * half));
  return (value * gate.sigmoid()).to(self.scalar_type());
}

std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) {
  // The kernel computes with contiguous tensors.
  const Tensor x = widen(self.contiguous());
  const Tensor buffer = x.abs().neg().exp();
  return {(x.clamp({}, 0) - buffer.log1p()).to(self.scalar_type()), buffer.to(self.scalar_type())};
}

}  // namespace

DecompositionTable activation_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::_prelu_kernel>("_to_copy, gt, mul, where", prelu),
      row<ops::celu>("_to_copy, expm1, gt, mul, where", celu),
      row<ops::elu>("_to_copy, expm1, gt, mul, where", elu),
      row<ops::gelu>("_to_copy, add, erf, mul, sub, tanh", gelu),
      row<ops::glu>("_to_copy, mul, sigmoid, slice", glu),
      row<ops::hardshrink>("_to_copy, full, ge, le, logical_and, where", hardshrink),
      row<ops::hardsigmoid>("_to_copy, add, clamp, div", hardsigmoid),
      row<ops::hardswish>("_to_copy, add, clamp, div, mul", hardswish),
      row<ops::hardtanh>("clamp", hardtanh),
      row<ops::leaky_relu>("_to_copy, gt, mul, where", leaky_relu),
      row<ops::log_sigmoid_forward>("_to_copy, abs, clamp, clone, exp, log1p, neg, sub",
                                    log_sigmoid_forward),
      row<ops::mish>("_to_copy, exp, log1p, mul, tanh", mish),
      row<ops::silu>("_to_copy, add, div, exp, neg", silu),
      row<ops::softplus>("_to_copy, div, exp, gt, log1p, mul, where", softplus),
      row<ops::softshrink>("_to_copy, add, gt, lt, mul, sub, where", softshrink),
      row<ops::threshold>("full, le, where", threshold),
  });
  return table;
}

}  // namespace assay::autograd
