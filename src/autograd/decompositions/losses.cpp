// Loss functions. Not binary_cross_entropy, which raises for some values.
#include "autograd/decompositions/losses.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
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

// The losses of the elements are a tensor of `dtype` before they are reduced.
Tensor reduced(const Tensor& loss, std::int64_t reduction, at::ScalarType dtype) {
  return reduce_loss(rounded(loss, dtype), reduction).to(dtype);
}

Tensor mse_loss(const Tensor& self, const Tensor& target, std::int64_t reduction) {
  const at::ScalarType dtype = promoted_dtype(self, target);
  return reduced(square(rounded(widen(self) - widen(target), dtype)), reduction, dtype);
}

Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, std::int64_t reduction,
                      double beta) {
  TORCH_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  // The kernel of half rounds in between, that of bfloat16 does not.
  const at::ScalarType dtype = promoted_dtype(self, target);
  const at::ScalarType step = dtype == at::kHalf ? dtype : compute_dtype(dtype);
  const Tensor distance = rounded((widen(self) - widen(target)).abs(), step);
  const double knee = rounded(beta, step);
  const Tensor parabola = rounded(rounded(distance * 0.5, step) * distance, step);
  const Tensor loss =
      beta == 0 ? distance
                : at::where(distance < knee, parabola / knee, distance - rounded(0.5 * knee, step));
  return reduced(loss, reduction, dtype);
}

Tensor huber_loss(const Tensor& self, const Tensor& target, std::int64_t reduction, double delta) {
  // The kernel of bfloat16 rounds in between, that of half does not.
  const at::ScalarType dtype = promoted_dtype(self, target);
  const at::ScalarType step = dtype == at::kBFloat16 ? dtype : compute_dtype(dtype);
  const Tensor distance = rounded((widen(self) - widen(target)).abs(), step);
  const double knee = rounded(delta, step);
  const Tensor above = rounded(distance - rounded(0.5 * knee, step), step);
  const Tensor parabola = rounded(distance * 0.5, step) * distance;
  return reduced(at::where(distance <= knee, parabola, above * knee), reduction, dtype);
}

Tensor soft_margin_loss(const Tensor& self, const Tensor& target, std::int64_t reduction) {
  // ATen makes it of operators, each of which rounds.
  const at::ScalarType dtype = self.scalar_type();
  const Tensor product = rounded(widen(self) * widen(target).neg(), dtype);
  return reduced(rounded(product.exp(), dtype).log1p(), reduction, dtype);
}

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const std::optional<Tensor>& weight,
                                        const std::optional<Tensor>& pos_weight,
                                        std::int64_t reduction) {
  const Tensor x = widen(self);
  const Tensor y = widen(target);
  // ATen makes it of operators, each of which rounds. The first makes a tensor like the target, and
  // the others write to it.
  const at::ScalarType dtype = target.scalar_type();
  Tensor log_sigmoid = rounded(x.clamp({}, 0) - x.abs().neg().exp().log1p(), dtype);
  if (pos_weight && pos_weight->defined()) {
    const Tensor more = rounded(widen(*pos_weight) - 1, dtype);
    log_sigmoid = rounded(rounded(rounded(more * y, dtype) + 1, dtype) * log_sigmoid, dtype);
  }
  Tensor loss = rounded(rounded(one_minus(y), dtype) * x, dtype) - log_sigmoid;
  if (weight && weight->defined()) loss = rounded(loss, dtype) * widen(*weight);
  return reduced(loss, reduction, dtype);
}

}  // namespace

DecompositionTable loss_decompositions() {
  static const auto table = std::to_array<Decomposition>({
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
