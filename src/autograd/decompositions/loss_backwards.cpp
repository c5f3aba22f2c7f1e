// The derivatives of loss functions.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/binary_cross_entropy_backward_ops.h>
#include <ATen/ops/huber_loss_backward_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/smooth_l1_loss_backward_ops.h>
#include <ATen/ops/soft_margin_loss_backward_ops.h>
#include <ATen/ops/where.h>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Tensor;

// These operators give contiguous gradients, whatever the input.
Tensor difference_of(const Tensor& self, const Tensor& target) {
  return (widen(self) - widen(target)).contiguous();
}

// The part of a reduced loss that one element of `self` is.
double share(const Tensor& self, std::int64_t reduction) {
  return reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(self.numel()) : 1.0;
}

Tensor mse_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                         std::int64_t reduction) {
  const at::ScalarType dtype = self.scalar_type();
  const Tensor difference = rounded(difference_of(self, target), dtype);
  const double factor = rounded(2 * share(self, reduction), dtype);
  return (rounded(difference * factor, dtype) * widen(grad)).to(dtype);
}

// Both losses are parabolas with straight arms: the slope is the difference in units of `knee`,
// and the arms' slope `steepest` beyond.
Tensor limited_slope(const Tensor& difference, double knee, double unit, double steepest) {
  const Tensor slope = difference / unit;
  const Tensor right = at::where(difference >= knee, constant(slope, steepest), slope);
  return at::where(difference <= -knee, constant(slope, -steepest), right);
}

Tensor smooth_l1_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                               std::int64_t reduction, double beta) {
  const Tensor difference = difference_of(self, target);
  // Without a parabola no difference is in units of it, and the slope at zero is that of the left.
  const Tensor slope = limited_slope(difference, beta, beta == 0 ? 1.0 : beta, 1.0);
  return (slope * share(self, reduction) * widen(grad)).to(self.scalar_type());
}

Tensor huber_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                           std::int64_t reduction, double delta) {
  const at::ScalarType dtype = self.scalar_type();
  const double knee = rounded(delta, dtype);
  const Tensor difference = rounded(difference_of(self, target), dtype);
  const Tensor slope = limited_slope(difference, knee, 1.0, knee);
  const double factor = rounded(share(self, reduction), dtype);
  return (rounded(slope * factor, dtype) * widen(grad)).to(dtype);
}

Tensor soft_margin_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                 std::int64_t reduction) {
  const at::ScalarType dtype = self.scalar_type();
  const Tensor y = widen(target).neg();
  const Tensor power = rounded(rounded(y * widen(self), dtype).exp(), dtype);
  const double factor = rounded(share(self, reduction), dtype);
  const Tensor dividend = rounded(rounded(y * power, dtype) * factor, dtype);
  return (rounded(dividend / rounded(power + 1, dtype), dtype) * widen(grad)).to(dtype);
}

Tensor binary_cross_entropy_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                                     const std::optional<Tensor>& weight, std::int64_t reduction) {
  const Tensor x = widen(self);
  // The operator's own bound, which keeps the quotient finite.
  const at::ScalarType dtype = self.scalar_type();
  const Tensor variance =
      rounded(rounded(one_minus(x), dtype) * x, dtype).clamp(rounded(1e-12, dtype), {});
  const Tensor distance = rounded(x - widen(target), dtype);
  Tensor slope = rounded(widen(grad) * distance, dtype) / variance;
  if (weight && weight->defined()) slope = rounded(slope, dtype) * widen(*weight);
  if (reduction == at::Reduction::Mean) slope = rounded(slope, dtype) / self.numel();
  return slope.to(dtype);
}

}  // namespace

DecompositionTable loss_backward_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::binary_cross_entropy_backward>("_to_copy, add, clamp, div, mul, neg, sub",
                                              binary_cross_entropy_backward),
      row<ops::huber_loss_backward>("_to_copy, clone, div, full, ge, le, mul, sub, where",
                                    huber_loss_backward),
      row<ops::mse_loss_backward>("_to_copy, clone, mul, sub", mse_loss_backward),
      row<ops::smooth_l1_loss_backward>("_to_copy, clone, div, full, ge, le, mul, sub, where",
                                        smooth_l1_loss_backward),
      row<ops::soft_margin_loss_backward>("_to_copy, add, div, exp, mul, neg",
                                          soft_margin_loss_backward),
  });
  return table;
}

}  // namespace assay::autograd
