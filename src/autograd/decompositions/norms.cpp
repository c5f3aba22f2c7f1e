// Norms of vectors.
#include <ATen/core/Tensor.h>
#include <ATen/ops/dist_ops.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/norm_ops.h>
#include <ATen/ops/renorm_ops.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <limits>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Scalar;
using at::Tensor;

Tensor vector_norm(const Tensor& self, const Scalar& order, at::OptionalIntArrayRef dims,
                   bool keepdim, std::optional<at::ScalarType> dtype) {
  const at::ScalarType result = dtype.value_or(self.scalar_type());
  const Tensor x = self.to(compute_dtype(result));
  const auto over = reduced_dims(self, dims);
  const double p = order.to<double>();
  // Each value of p has the fewest operations that give its norm.
  const auto norm = [&]() -> Tensor {
    if (p == 0) return sum_over((x != 0).to(x.scalar_type()), over, keepdim);
    if (p == 1) return sum_over(x.abs(), over, keepdim);
    if (p == 2) return sum_over(square(x), over, keepdim).sqrt();
    if (std::isinf(p)) return p > 0 ? x.abs().amax(over, keepdim) : x.abs().amin(over, keepdim);
    return sum_over(x.abs().pow(p), over, keepdim).pow(1 / p);
  };
  return norm().to(result);
}

Tensor norm_scalar(const Tensor& self, const Scalar& p) {
  return vector_norm(self, p, {}, false, {});
}

Tensor norm_dim(const Tensor& self, const std::optional<Scalar>& p, at::IntArrayRef dims,
                bool keepdim) {
  return vector_norm(self, p.value_or(2), dims, keepdim, {});
}

Tensor norm_dim_dtype(const Tensor& self, const std::optional<Scalar>& p, at::IntArrayRef dims,
                      bool keepdim, at::ScalarType dtype) {
  return vector_norm(self, p.value_or(2), dims, keepdim, dtype);
}

Tensor norm_dtype(const Tensor& self, const std::optional<Scalar>& p, at::ScalarType dtype) {
  return vector_norm(self, p.value_or(2), {}, false, dtype);
}

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return vector_norm(self - other, p, {}, false, {});
}

// Scales down the slices along `dim` whose norm is larger than `maxnorm`.
Tensor renorm(const Tensor& self, const Scalar& p, std::int64_t dim, const Scalar& maxnorm) {
  auto over = reduced_dims(self, {});
  over.erase(over.begin() + (dim < 0 ? dim + self.dim() : dim));
  const Tensor norm = vector_norm(self, p, over, true, compute_dtype(self.scalar_type()));
  // The kernel's own guard against dividing by zero.
  const Tensor shrunk = (norm + 1e-7).reciprocal() * maxnorm;
  const Tensor factor = at::where(norm > maxnorm, shrunk, constant(norm, 1));
  return (self * factor.to(self.scalar_type())).contiguous();
}

}  // namespace

DecompositionTable norm_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::dist>("_to_copy, abs, pow, sub, sum", dist),
      row<ops::linalg_vector_norm>("_to_copy, abs, amax, amin, mul, ne, pow, sqrt, sum",
                                   vector_norm),
      row<ops::norm_Scalar>("_to_copy, abs, pow, sum", norm_scalar),
      row<ops::norm_ScalarOpt_dim>("_to_copy, mul, sqrt, sum", norm_dim),
      row<ops::norm_ScalarOpt_dim_dtype>("_to_copy, abs, sum", norm_dim_dtype),
      row<ops::norm_ScalarOpt_dtype>("_to_copy, mul, sqrt, sum", norm_dtype),
      row<ops::renorm>("_to_copy, add, clone, full, gt, mul, reciprocal, sqrt, sum, where", renorm),
  });
  return table;
}

}  // namespace assay::autograd
