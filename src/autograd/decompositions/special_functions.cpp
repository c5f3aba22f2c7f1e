// Logarithms, powers and their like that are made of simpler functions.
#include <ATen/core/Tensor.h>
#include <ATen/ops/angle_ops.h>
#include <ATen/ops/logaddexp2_ops.h>
#include <ATen/ops/logaddexp_ops.h>
#include <ATen/ops/logit_ops.h>
#include <ATen/ops/sinc_ops.h>
#include <ATen/ops/special_entr_ops.h>
#include <ATen/ops/special_xlog1py_ops.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy_ops.h>

#include <limits>
#include <numbers>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Scalar;
using at::Tensor;

// `x * logarithm(y)`, but zero where x is, unless y is NaN; x and y are in the dtype in which to
// compute.
Tensor times_logarithm(const Tensor& x, const Tensor& y, const Tensor& logarithm) {
  const Tensor nan = constant(logarithm, std::numeric_limits<double>::quiet_NaN());
  return at::where(y.isnan(), nan, zero_where(x == 0, x * logarithm));
}

Tensor xlogy(const Tensor& self, const Tensor& other) {
  const at::ScalarType dtype = float_result_dtype(promoted_dtype(self, other));
  const Tensor y = other.to(dtype);
  const Tensor result = times_logarithm(widen(self.to(dtype)), widen(y), widen(y.log())).to(dtype);
  return in_order_of_operands({self, other}, result);
}

Tensor xlog1py(const Tensor& self, const Tensor& other) {
  const at::ScalarType dtype = float_result_dtype(promoted_dtype(self, other));
  const Tensor y = other.to(dtype);
  const Tensor result =
      times_logarithm(widen(self.to(dtype)), widen(y), widen(y.log1p())).to(dtype);
  return in_order_of_operands({self, other}, result);
}

// A number is one of the result's dtype, as a tensor is.
Tensor number_like(const Tensor& tensor, const Scalar& number) {
  return constant(tensor.to(float_result_dtype(promoted_dtype(tensor, number))), number);
}

Tensor xlogy_scalar_self(const Scalar& self, const Tensor& other) {
  return xlogy(number_like(other, self), other);
}

Tensor xlogy_scalar_other(const Tensor& self, const Scalar& other) {
  return xlogy(self, number_like(self, other));
}

Tensor xlog1py_scalar_self(const Scalar& self, const Tensor& other) {
  return xlog1py(number_like(other, self), other);
}

Tensor xlog1py_scalar_other(const Tensor& self, const Scalar& other) {
  return xlog1py(self, number_like(self, other));
}

Tensor entr(const Tensor& self) {
  const Tensor x = widen_to_float(self);
  const Tensor not_positive = zero_where(x == 0, constant(x, -kInfinity));
  const at::ScalarType dtype = float_result_dtype(self.scalar_type());
  const Tensor value = at::where(x > 0, x.neg() * rounded(x.log(), dtype), not_positive);
  return at::where(x.isnan(), x, value).to(dtype);
}

// The larger of the two, plus what the smaller adds. Two equal infinities have no difference.
template <typename Log1p>
Tensor log_of_sum(const Tensor& self, const Tensor& other, const Log1p& log1p_of_power) {
  const Tensor a = widen(self);
  const Tensor b = widen(other);
  const Tensor larger = a.maximum(b);
  const Tensor sum = larger + log1p_of_power((a - b).abs().neg());
  const Tensor same_infinity = (a.abs() == kInfinity).logical_and(a == b);
  return at::where(same_infinity, a, sum).to(promoted_dtype(self, other));
}

Tensor logaddexp(const Tensor& self, const Tensor& other) {
  return log_of_sum(self, other, [](const Tensor& x) { return x.exp().log1p(); });
}

Tensor logaddexp2(const Tensor& self, const Tensor& other) {
  return log_of_sum(self, other,
                    [](const Tensor& x) { return x.exp2().log1p() * std::numbers::log2e; });
}

Tensor logit(const Tensor& self, std::optional<double> eps) {
  const at::ScalarType dtype = float_result_dtype(self.scalar_type());
  Tensor x = widen_to_float(self);
  if (eps) {
    const double low = rounded(*eps, dtype);
    x = x.clamp(low, rounded(1 - low, dtype));
  }
  return rounded(x / rounded(one_minus(x), dtype), dtype).log().to(dtype);
}

Tensor sinc(const Tensor& self) {
  const Tensor x = widen_to_float(self) * std::numbers::pi;
  return at::where(x == 0, constant(x, 1), x.sin() / x).to(float_result_dtype(self.scalar_type()));
}

// Of a real number: pi if it is negative. NaN stays.
Tensor angle(const Tensor& self) {
  const Tensor x = self.to(float_result_dtype(self.scalar_type()));
  const Tensor value = at::where(x < 0, constant(x, std::numbers::pi), constant(x, 0));
  return at::where(x.isnan(), x, value);
}

}  // namespace

DecompositionTable special_function_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::angle>("_to_copy, full, isnan, lt, where", angle),
      row_of_floats<ops::logaddexp>(
          "_to_copy, abs, add, eq, exp, log1p, logical_and, maximum, neg, sub, where", logaddexp),
      row_of_floats<ops::logaddexp2>(
          "_to_copy, abs, add, eq, exp2, log1p, logical_and, maximum, mul, neg, sub, where",
          logaddexp2),
      row<ops::logit>("_to_copy, add, clamp, div, log, neg", logit),
      row<ops::sinc>("_to_copy, div, eq, full, mul, sin, where", sinc),
      row<ops::special_entr>("_to_copy, eq, full, gt, isnan, log, mul, neg, where", entr),
      row<ops::special_xlog1py>("_to_copy, clone, eq, full, isnan, log1p, mul, permute, where",
                                xlog1py),
      row<ops::special_xlog1py_other_scalar>("_to_copy, eq, full, isnan, log1p, mul, where",
                                             xlog1py_scalar_other),
      row<ops::special_xlog1py_self_scalar>("_to_copy, eq, full, isnan, log1p, mul, where",
                                            xlog1py_scalar_self),
      row<ops::xlogy_Scalar_Other>("_to_copy, eq, full, isnan, log, mul, where",
                                   xlogy_scalar_other),
      row<ops::xlogy_Scalar_Self>("_to_copy, eq, full, isnan, log, mul, where", xlogy_scalar_self),
      row<ops::xlogy_Tensor>("_to_copy, clone, eq, full, isnan, log, mul, permute, where", xlogy),
  });
  return table;
}

}  // namespace assay::autograd
