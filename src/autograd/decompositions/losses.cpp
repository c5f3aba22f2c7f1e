// Loss functions.
#include "autograd/decompositions/losses.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/binary_cross_entropy_ops.h>
#include <ATen/ops/binary_cross_entropy_with_logits_ops.h>
#include <ATen/ops/huber_loss_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/smooth_l1_loss_ops.h>
#include <ATen/ops/soft_margin_loss_ops.h>
#include <ATen/ops/where.h>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

at::Tensor reduce_loss(const at::Tensor& loss, std::int64_t reduction) {
  switch (reduction) {
    case at::Reduction::Mean:
      return mean_over(loss, reduced_dims(loss, {}), false);
    case at::Reduction::Sum:
      return sum_over(loss, reduced_dims(loss, {}), false);
    default:
      return loss;
  }
}

namespace {

namespace ops = at::_ops;
using at::Tensor;

Tensor mse_loss(const Tensor& self, const Tensor& target, std::int64_t reduction) {
  const Tensor loss = square(widen(self) - widen(target));
  return reduce_loss(loss, reduction).to(self.scalar_type());
}

Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, std::int64_t reduction,
                      double beta) {
  const Tensor distance = (widen(self) - widen(target)).abs();
  const Tensor loss =
      beta == 0 ? distance
                : at::where(distance < beta, square(distance) * 0.5 / beta, distance - 0.5 * beta);
  return reduce_loss(loss, reduction).to(self.scalar_type());
}

Tensor huber_loss(const Tensor& self, const Tensor& target, std::int64_t reduction, double delta) {
  const Tensor distance = (widen(self) - widen(target)).abs();
  const Tensor loss =
      at::where(distance <= delta, square(distance) * 0.5, (distance - 0.5 * delta) * delta);
  return reduce_loss(loss, reduction).to(self.scalar_type());
}

Tensor soft_margin_loss(const Tensor& self, const Tensor& target, std::int64_t reduction) {
  const Tensor loss = (widen(target).neg() * widen(self)).exp().log1p();
  return reduce_loss(loss, reduction).to(self.scalar_type());
}

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target,
                            const std::optional<Tensor>& weight, std::int64_t reduction) {
  const Tensor x = widen(self);
  const Tensor y = widen(target);
  // The logarithms are cut off at -100, by the operator's definition, so that no loss is infinite.
  const Tensor log_false = x.neg().log1p().clamp(-100, {});
  const Tensor log_true = x.log().clamp(-100, {});
  Tensor loss = (y - 1) * log_false - y * log_true;
  if (weight && weight->defined()) loss = loss * widen(*weight);
  return reduce_loss(loss, reduction).to(self.scalar_type());
}

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const std::optional<Tensor>& weight,
                                        const std::optional<Tensor>& pos_weight,
                                        std::int64_t reduction) {
  const Tensor x = widen(self);
  const Tensor y = widen(target);
  const Tensor log_sigmoid = x.clamp({}, 0) - x.abs().neg().exp().log1p();
  Tensor weighted = log_sigmoid;
  if (pos_weight && pos_weight->defined()) {
    weighted = ((widen(*pos_weight) - 1) * y + 1) * log_sigmoid;
  }
  Tensor loss = one_minus(y) * x - weighted;
  if (weight && weight->defined()) loss = loss * widen(*weight);
  return reduce_loss(loss, reduction).to(self.scalar_type());
}

}  // namespace

DecompositionTable loss_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::binary_cross_entropy>("_to_copy, clamp, div, log, log1p, mul, neg, sub, sum",
                                     binary_cross_entropy),
      row<ops::binary_cross_entropy_with_logits>(
          "_to_copy, abs, add, clamp, div, exp, log1p, mul, neg, sub, sum",
          binary_cross_entropy_with_logits),
      row<ops::huber_loss>("_to_copy, abs, div, le, mul, sub, sum, where", huber_loss),
      row<ops::mse_loss>("_to_copy, div, mul, sub, sum", mse_loss),
      row<ops::smooth_l1_loss>("_to_copy, abs, div, lt, mul, sub, sum, where", smooth_l1_loss),
      row<ops::soft_margin_loss>("_to_copy, div, exp, log1p, mul, neg, sum", soft_margin_loss),
  });
  return table;
}

}  // namespace assay::autograd
