// Reductions, made of sum, amax, amin and any.
#include <ATen/core/Tensor.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/aminmax_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/count_nonzero_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/nansum_ops.h>
#include <ATen/ops/std_mean_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/trace_ops.h>
#include <ATen/ops/var_mean_ops.h>
#include <ATen/ops/var_ops.h>

#include <algorithm>
#include <tuple>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Scalar;
using at::Tensor;

using OptionalDtype = std::optional<at::ScalarType>;
using Correction = std::optional<Scalar>;

Tensor sum(const Tensor& self, OptionalDtype dtype) {
  return self.sum(reduced_dims(self, {}), false, dtype);
}

Tensor mean_dim(const Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                OptionalDtype dtype) {
  const at::ScalarType result = dtype.value_or(self.scalar_type());
  TORCH_CHECK(at::isFloatingType(result),
              "mean(): could not infer output dtype. Input dtype must be either a floating point "
              "or complex dtype. Got: ",
              result);
  const Tensor x = self.to(compute_dtype(result));
  return mean_over(x, reduced_dims(self, dims), keepdim).to(result);
}

Tensor mean(const Tensor& self, OptionalDtype dtype) { return mean_dim(self, {}, false, dtype); }

Tensor nansum(const Tensor& self, at::OptionalIntArrayRef dims, bool keepdim, OptionalDtype dtype) {
  const Tensor numbers = self.is_floating_point() ? zero_where(self.isnan(), self) : self;
  return numbers.sum(reduced_dims(self, dims), keepdim, dtype);
}

std::tuple<Tensor, Tensor> widened_var_mean(const Tensor& self, at::OptionalIntArrayRef dims,
                                            const Correction& correction, bool keepdim) {
  TORCH_CHECK(self.is_floating_point(),
              "std and var only support floating point and complex dtypes");
  const Tensor x = widen(self);
  const auto over = reduced_dims(self, dims);
  const Tensor mean = mean_over(x, over, true);
  const double count = static_cast<double>(count_in(self, over));
  const double freedom = std::max(0.0, count - correction.value_or(1).to<double>());
  return {sum_over(square(x - mean), over, keepdim) / freedom,
          keepdim || over.empty() ? mean : mean.squeeze(over)};
}

std::tuple<Tensor, Tensor> var_mean(const Tensor& self, at::OptionalIntArrayRef dims,
                                    const Correction& correction, bool keepdim) {
  const auto [var, mean] = widened_var_mean(self, dims, correction, keepdim);
  return {var.to(self.scalar_type()), mean.to(self.scalar_type())};
}

Tensor var(const Tensor& self, at::OptionalIntArrayRef dims, const Correction& correction,
           bool keepdim) {
  return std::get<0>(widened_var_mean(self, dims, correction, keepdim)).to(self.scalar_type());
}

std::tuple<Tensor, Tensor> std_mean(const Tensor& self, at::OptionalIntArrayRef dims,
                                    const Correction& correction, bool keepdim) {
  const auto [var, mean] = widened_var_mean(self, dims, correction, keepdim);
  return {var.sqrt().to(self.scalar_type()), mean.to(self.scalar_type())};
}

Tensor standard_deviation(const Tensor& self, at::OptionalIntArrayRef dims,
                          const Correction& correction, bool keepdim) {
  return std::get<0>(widened_var_mean(self, dims, correction, keepdim))
      .sqrt()
      .to(self.scalar_type());
}

Tensor max(const Tensor& self) { return self.amax(reduced_dims(self, {})); }
Tensor min(const Tensor& self) { return self.amin(reduced_dims(self, {})); }

std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<std::int64_t> dim,
                                   bool keepdim) {
  const auto over = dim ? std::vector<std::int64_t>{*dim} : reduced_dims(self, {});
  return {self.amin(over, keepdim), self.amax(over, keepdim)};
}

Tensor count_nonzero_dims(const Tensor& self, at::IntArrayRef dims) {
  return (self != 0).sum(reduced_dims(self, dims));
}

Tensor count_nonzero(const Tensor& self, std::optional<std::int64_t> dim) {
  return dim ? count_nonzero_dims(self, *dim) : count_nonzero_dims(self, {});
}

// For historical reasons all of bytes are a byte.
Tensor like_all(const Tensor& truth, const Tensor& self) {
  return self.scalar_type() == at::kByte ? truth.to(at::kByte) : truth;
}

Tensor all(const Tensor& self) { return like_all(self.logical_not().any().logical_not(), self); }

Tensor all_dim(const Tensor& self, std::int64_t dim, bool keepdim) {
  return like_all(self.logical_not().any(dim, keepdim).logical_not(), self);
}

Tensor all_dims(const Tensor& self, at::OptionalIntArrayRef dims, bool keepdim) {
  return like_all(self.logical_not().any(dims, keepdim).logical_not(), self);
}

Tensor trace(const Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix");
  return self.diagonal().sum(at::IntArrayRef{0});
}

}  // namespace

DecompositionTable reduction_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::all>("_to_copy, any, logical_not", all),
      row<ops::all_dim>("any, logical_not", all_dim),
      row<ops::all_dims>("any, logical_not", all_dims),
      row<ops::aminmax>("amax, amin", aminmax),
      row<ops::count_nonzero>("ne, sum", count_nonzero),
      row<ops::count_nonzero_dim_IntList>("ne, sum", count_nonzero_dims),
      row<ops::max>("amax", max),
      row<ops::mean>("_to_copy, div, sum", mean),
      row<ops::mean_dim>("_to_copy, div, sum", mean_dim),
      row<ops::min>("amin", min),
      row<ops::nansum>("full, isnan, sum, where", nansum),
      row<ops::std_correction>("_to_copy, div, mul, sqrt, squeeze, sub, sum", standard_deviation),
      row<ops::std_mean_correction>("_to_copy, div, mul, sqrt, squeeze, sub, sum", std_mean),
      row<ops::sum>("sum", sum),
      row<ops::trace>("diagonal, sum", trace),
      row<ops::var_correction>("_to_copy, div, mul, squeeze, sub, sum", var),
      row<ops::var_mean_correction>("_to_copy, div, mul, squeeze, sub, sum", var_mean),
  });
  return table;
}

}  // namespace assay::autograd
