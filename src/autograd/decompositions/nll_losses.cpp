// The negative log likelihood of classes, and its derivative: `cross_entropy` is made of these.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/nll_loss2d_backward_ops.h>
#include <ATen/ops/nll_loss2d_forward_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/where.h>

#include <tuple>

#include "autograd/decompositions/losses.h"
#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// Classes are along dimension 1, or the only one if there is no batch.
std::int64_t class_dim(const Tensor& self) { return self.dim() == 1 ? 0 : 1; }

std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            const OptionalTensor& weight, std::int64_t reduction,
                                            std::int64_t ignore_index) {
  const std::int64_t dim = class_dim(self);
  const Tensor x = widen(self);
  const Tensor ignored = target == ignore_index;
  // What is ignored may be no class at all, but an index must be in bounds.
  const Tensor index = zero_where(ignored, target.to(at::kLong)).unsqueeze(dim);
  Tensor loss = x.gather(dim, index).squeeze(dim).neg();
  Tensor class_weights = constant(x, 1);
  if (weight && weight->defined()) {
    const Tensor row = along(widen(*weight), dim, self.dim());
    class_weights = row.expand_as(self).gather(dim, index).squeeze(dim);
    loss = loss * class_weights;
  }
  loss = zero_where(ignored, loss);

  const at::ScalarType dtype = self.scalar_type();
  if (reduction == at::Reduction::None && self.dim() > 1) {
    return {loss.to(dtype), constant(self, 0)};
  }
  const Tensor counted = at::where(ignored, constant(x, 0), class_weights);
  const Tensor total = sum_over(counted, reduced_dims(counted, {}), false);
  const Tensor sum = sum_over(loss, reduced_dims(loss, {}), false);
  const Tensor output = reduction == at::Reduction::Mean ? sum / total : sum;
  return {output.to(dtype), total.to(dtype)};
}

// Every class but the target gets nothing. A comparison per element rather than a scatter, so that
// it can be fused with what follows, the derivative of log_softmax as a rule.
Tensor nll_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                         const OptionalTensor& weight, std::int64_t reduction,
                         std::int64_t ignore_index, const Tensor& total_weight) {
  const std::int64_t dim = class_dim(self);
  Tensor g = widen(grad).neg();
  if (reduction == at::Reduction::Mean) g = g / widen(total_weight);
  if (g.dim() > 0 && self.dim() > 1) g = g.unsqueeze(dim);
  if (weight && weight->defined()) g = g * along(widen(*weight), dim, self.dim());

  const Tensor index = target.unsqueeze(dim);
  const Tensor classes = at::arange(0, self.size(dim), 1, target.options().dtype(at::kLong));
  const Tensor chosen =
      (along(classes, dim, self.dim()) == index).logical_and(index != ignore_index);
  return at::where(chosen, g, constant(g, 0)).to(self.scalar_type());
}

}  // namespace

DecompositionTable nll_loss_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::nll_loss2d_backward>(
          "_to_copy, arange, div, eq, full, logical_and, mul, ne, neg, unsqueeze, view, where",
          nll_loss_backward),
      row<ops::nll_loss2d_forward>(
          "_to_copy, div, eq, expand, full, gather, mul, neg, squeeze, sum, unsqueeze, view, where",
          nll_loss_forward),
      row<ops::nll_loss_backward>(
          "_to_copy, arange, div, eq, full, logical_and, mul, ne, neg, unsqueeze, view, where",
          nll_loss_backward),
      row<ops::nll_loss_forward>(
          "_to_copy, div, eq, expand, full, gather, mul, neg, squeeze, sum, unsqueeze, view, where",
          nll_loss_forward),
  });
  return table;
}

}  // namespace assay::autograd
