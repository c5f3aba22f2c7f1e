// The derivatives of activation functions.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_prelu_kernel_backward_ops.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu_backward_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/glu_backward_ops.h>
#include <ATen/ops/hardshrink_backward_ops.h>
#include <ATen/ops/hardsigmoid_backward_ops.h>
#include <ATen/ops/hardswish_backward_ops.h>
#include <ATen/ops/hardtanh_backward_ops.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/logit_backward_ops.h>
#include <ATen/ops/mish_backward_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/rrelu_with_noise_backward_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/softshrink_backward_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/where.h>

#include <limits>
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

// The derivative of gelu at x, by its definition with the error function.
Tensor gelu_slope(const Tensor& x) {
  const double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const Tensor distribution = ((x * (1 / std::numbers::sqrt2)).erf() + 1) * 0.5;
  return distribution + x * (x * x * -0.5).exp() * density;
}

Tensor gelu_tanh_slope(const Tensor& x) {
  const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double kappa = 0.044715;
  const Tensor cube = x * x * x;
  const Tensor gate = ((x + cube * kappa) * beta).tanh();
  const Tensor inner_slope = (x * x * (3 * kappa) + 1) * beta;
  return (gate + 1) * 0.5 + x * 0.5 * one_minus(square(gate)) * inner_slope;
}

Tensor gelu_backward(const Tensor& grad, const Tensor& self, std::string_view approximate) {
  const Tensor x = widen(self);
  const Tensor slope = approximate == "tanh" ? gelu_tanh_slope(x) : gelu_slope(x);
  return (widen(grad) * slope).to(self.scalar_type());
}

Tensor silu_backward(const Tensor& grad, const Tensor& self) {
  const Tensor x = widen(self);
  const Tensor gate = x.sigmoid();
  return (widen(grad) * gate * (x * one_minus(gate) + 1)).to(self.scalar_type());
}

Tensor mish_backward(const Tensor& grad, const Tensor& self) {
  const Tensor x = widen(self);
  const Tensor gate = x.exp().log1p().tanh();
  const Tensor slope = gate + x * x.sigmoid() * one_minus(square(gate));
  return (widen(grad) * slope).to(self.scalar_type());
}

Tensor leaky_relu_backward(const Tensor& grad, const Tensor& self, const Scalar& negative_slope,
                           bool /*self_is_result*/) {
  // A positive slope keeps the sign, so that self may as well be the result.
  const Tensor g = widen(grad);
  return at::where(self > 0, g, g * negative_slope).to(self.scalar_type());
}

Tensor rrelu_backward(const Tensor& grad, const Tensor& self, const Tensor& noise,
                      const Scalar& lower, const Scalar& upper, bool training,
                      bool self_is_result) {
  const double low = lower.to<double>();
  const double high = upper.to<double>();
  // The kernel's own bound for "the slope was drawn".
  if (training && high - low > 1e-6) return noise * grad;
  return leaky_relu_backward(grad, self, (low + high) / 2, self_is_result);
}

std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad, const Tensor& self,
                                          const Tensor& weight) {
  const Tensor x = widen(self);
  const Tensor g = widen(grad);
  const Tensor positive = x > 0;
  return {at::where(positive, g, widen(weight) * g).to(self.scalar_type()),
          zero_where(positive, x * g).to(self.scalar_type())};
}

Tensor elu_backward(const Tensor& grad, const Scalar& alpha, const Scalar& scale,
                    const Scalar& input_scale, bool is_result, const Tensor& self_or_result) {
  const Tensor x = widen(self_or_result);
  const Tensor g = widen(grad);
  const double negative_scale = alpha.to<double>() * scale.to<double>();
  const Tensor steep = is_result ? x + negative_scale : (x * input_scale).exp() * negative_scale;
  return at::where(x <= 0, g * input_scale * steep, g * scale).to(grad.scalar_type());
}

Tensor hardtanh_backward(const Tensor& grad, const Tensor& self, const Scalar& min_val,
                         const Scalar& max_val) {
  const Tensor x = widen(self);
  return zero_where((x <= min_val).logical_or(x >= max_val), grad);
}

Tensor hardswish_backward(const Tensor& grad, const Tensor& self) {
  const Tensor x = widen(self);
  const Tensor g = widen(grad);
  const Tensor above = at::where(x >= 3, g, g * (x / 3 + 0.5));
  return zero_where(x <= -3, above).to(grad.scalar_type());
}

Tensor hardsigmoid_backward(const Tensor& grad, const Tensor& self) {
  const Tensor x = widen(self);
  const Tensor inside = (x > -3).logical_and(x < 3);
  // The kernel has this constant in single precision, whatever the dtype.
  const Tensor slope = widen(grad) * static_cast<double>(1.0F / 6.0F);
  return at::where(inside, slope, constant(slope, 0)).to(grad.scalar_type());
}

Tensor softplus_backward(const Tensor& grad, const Tensor& self, const Scalar& beta,
                         const Scalar& threshold) {
  const Tensor g = widen(grad);
  const Tensor scaled = widen(self) * beta;
  const Tensor power = scaled.exp();
  return at::where(scaled > threshold, g, g * power / (power + 1)).to(grad.scalar_type());
}

Tensor threshold_backward(const Tensor& grad, const Tensor& self, const Scalar& threshold) {
  return zero_where(self <= threshold, grad);
}

// The same for hardshrink and softshrink.
Tensor shrink_backward(const Tensor& grad, const Tensor& self, const Scalar& lambd) {
  const double limit = rounded(lambd.to<double>(), self.scalar_type());
  const Tensor x = widen(self);
  return zero_where((x >= -limit).logical_and(x <= limit), grad);
}

Tensor tanh_backward(const Tensor& grad, const Tensor& output) {
  return (widen(grad) * one_minus(square(widen(output)))).to(grad.scalar_type());
}

Tensor sigmoid_backward(const Tensor& grad, const Tensor& output) {
  const Tensor y = widen(output);
  const Tensor g = widen(grad);
  // The kernel of half rounds in between, that of bfloat16 does not.
  if (output.scalar_type() == at::kHalf) {
    return (rounded(g * rounded(one_minus(y), at::kHalf), at::kHalf) * y).to(at::kHalf);
  }
  return (g * one_minus(y) * y).to(grad.scalar_type());
}

Tensor logit_backward(const Tensor& grad, const Tensor& self, std::optional<double> eps) {
  const Tensor x = widen(self);
  const double low = eps.value_or(0);
  const Tensor outside = (x < low).logical_or(x > 1 - low);
  const at::ScalarType dtype = self.scalar_type();
  const Tensor slope = widen(grad) / rounded(x * rounded(one_minus(x), dtype), dtype);
  const double elsewhere = eps ? 0 : std::numeric_limits<double>::quiet_NaN();
  return at::where(outside, constant(slope, elsewhere), slope).to(grad.scalar_type());
}

Tensor log_sigmoid_backward(const Tensor& grad, const Tensor& self, const Tensor& buffer) {
  const Tensor b = widen(buffer);
  const Tensor tail = b / (b + 1);
  const Tensor slope = at::where(self < 0, one_minus(tail), tail);
  return (widen(grad) * slope).to(grad.scalar_type());
}

Tensor glu_backward(const Tensor& grad, const Tensor& self, std::int64_t dim) {
  const std::int64_t half = self.size(dim) / 2;
  const Tensor value = widen(self.slice(dim, 0, half));
  const Tensor gate = widen(self.slice(dim, half, 2 * half).sigmoid());
  const Tensor g = widen(grad);
  return at::cat({gate * g, one_minus(gate) * gate * g * value}, dim).to(self.scalar_type());
}

Tensor native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {
  return grad * (mask.to(grad.scalar_type()) * scale);
}

}  // namespace

DecompositionTable activation_backward_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::_prelu_kernel_backward>("_to_copy, full, gt, mul, where", prelu_backward),
      row<ops::elu_backward>("_to_copy, add, exp, le, mul, where", elu_backward),
      row<ops::gelu_backward>("_to_copy, add, erf, exp, mul, neg, tanh", gelu_backward),
      row<ops::glu_backward>("_to_copy, add, cat, mul, neg, sigmoid, slice", glu_backward),
      row<ops::hardshrink_backward>("_to_copy, full, ge, le, logical_and, where", shrink_backward),
      row<ops::hardsigmoid_backward>("_to_copy, full, gt, logical_and, lt, mul, where",
                                     hardsigmoid_backward),
      row<ops::hardswish_backward>("_to_copy, add, div, full, ge, le, mul, where",
                                   hardswish_backward),
      row<ops::hardtanh_backward>("_to_copy, full, ge, le, logical_or, where", hardtanh_backward),
      row<ops::leaky_relu_backward>("_to_copy, gt, mul, where", leaky_relu_backward),
      row<ops::log_sigmoid_backward>("_to_copy, add, div, lt, mul, neg, where",
                                     log_sigmoid_backward),
      row<ops::logit_backward>("_to_copy, add, div, full, gt, logical_or, lt, mul, neg, where",
                               logit_backward),
      row<ops::mish_backward>("_to_copy, add, exp, log1p, mul, neg, sigmoid, tanh", mish_backward),
      row<ops::native_dropout_backward>("_to_copy, mul", native_dropout_backward),
      row<ops::rrelu_with_noise_backward>("_to_copy, gt, mul, where", rrelu_backward),
      row<ops::sigmoid_backward>("_to_copy, add, mul, neg", sigmoid_backward),
      row<ops::silu_backward>("_to_copy, add, mul, neg, sigmoid", silu_backward),
      row<ops::softplus_backward>("_to_copy, add, div, exp, gt, mul, where", softplus_backward),
      row<ops::softshrink_backward>("_to_copy, full, ge, le, logical_and, where", shrink_backward),
      row<ops::tanh_backward>("_to_copy, add, mul, neg", tanh_backward),
      row<ops::threshold_backward>("full, le, where", threshold_backward),
  });
  return table;
}

}  // namespace assay::autograd
