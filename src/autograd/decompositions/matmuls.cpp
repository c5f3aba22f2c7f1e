// Products with vectors, which are reductions. Products of matrices stay: a library does them best.
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/addr_ops.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/linalg_cross_ops.h>
#include <ATen/ops/mv_ops.h>
#include <ATen/ops/vdot_ops.h>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Scalar;
using at::Tensor;

Tensor scaled(const Tensor& tensor, const Scalar& factor) {
  return factor.equal(1) ? tensor : tensor * factor;
}

Tensor dot(const Tensor& self, const Tensor& tensor) {
  TORCH_CHECK(self.dim() == 1 && tensor.dim() == 1 && self.numel() == tensor.numel(),
              "1D tensors of one size expected");
  TORCH_CHECK(self.scalar_type() == tensor.scalar_type(),
              "dot : expected both vectors to have same dtype");
  return (widen(self) * widen(tensor)).sum({0}).to(self.scalar_type());
}

Tensor widened_mv(const Tensor& matrix, const Tensor& vector) {
  TORCH_CHECK(matrix.dim() == 2 && vector.dim() == 1 && matrix.size(1) == vector.size(0),
              "size mismatch, got input (", matrix.sizes(), "), vec (", vector.sizes(), ")");
  return (widen(matrix) * widen(vector)).sum({1});
}

Tensor mv(const Tensor& self, const Tensor& vec) {
  return widened_mv(self, vec).to(self.scalar_type());
}

// With a factor of zero `self` is not read at all: NaN times zero would be NaN. The factors of
// integers are integers.
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  const auto factor = [&](const Scalar& number) {
    const bool is_integral = at::isIntegralType(self.scalar_type(), /*includeBool=*/true);
    return is_integral ? Scalar(number.to<std::int64_t>()) : number;
  };
  const Tensor product = scaled(widened_mv(mat, vec), factor(alpha));
  if (factor(beta).equal(0)) return product.to(self.scalar_type());
  return (scaled(widen(self), factor(beta)) + product).to(self.scalar_type());
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  TORCH_CHECK(vec1.dim() == 1 && vec2.dim() == 1, "addr: expected vectors");
  const Tensor product = scaled(widen(vec1).unsqueeze(1) * widen(vec2), alpha);
  if (beta.equal(0)) return product.to(self.scalar_type());
  return (scaled(widen(self), beta) + product).to(self.scalar_type());
}

Tensor cross(const Tensor& self, const Tensor& other, std::int64_t dim) {
  TORCH_CHECK(self.dim() == other.dim() && self.size(dim) == 3 && other.size(dim) == 3,
              "linalg.cross: inputs dimension ", dim, " must have length 3");
  const auto component = [&](std::int64_t i, std::int64_t j) {
    return widen(self.slice(dim, i, i + 1)) * widen(other.slice(dim, j, j + 1));
  };
  return at::cat({component(1, 2) - component(2, 1), component(2, 0) - component(0, 2),
                  component(0, 1) - component(1, 0)},
                 dim)
      .to(promoted_dtype(self, other));
}

}  // namespace

DecompositionTable matmul_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::addmv>("_to_copy, add, mul, sum", addmv),
      row<ops::addr>("_to_copy, add, mul, unsqueeze", addr),
      row<ops::dot>("_to_copy, mul, sum", dot),
      row<ops::linalg_cross>("cat, mul, slice, sub", cross),
      row<ops::mv>("_to_copy, mul, sum", mv),
      row<ops::vdot>("_to_copy, mul, sum", dot),
  });
  return table;
}

}  // namespace assay::autograd
