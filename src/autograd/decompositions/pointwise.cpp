// Arithmetic, comparisons and selections, element by element.
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/deg2rad_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/fmax_ops.h>
#include <ATen/ops/fmin_ops.h>
#include <ATen/ops/frac_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/heaviside_ops.h>
#include <ATen/ops/isinf_ops.h>
#include <ATen/ops/isneginf_ops.h>
#include <ATen/ops/isposinf_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/nan_to_num_ops.h>
#include <ATen/ops/rad2deg_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/where.h>

#include <cmath>
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

bool is_one(const Scalar& value) { return value.equal(1); }

Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
               const Scalar& value) {
  const at::ScalarType dtype = at::native::result_type({self, tensor1, tensor2});
  const Tensor left = widen(tensor1);
  // Integers are multiplied by the whole part.
  const Scalar factor = at::isIntegralType(dtype, true) ? Scalar(value.to<std::int64_t>()) : value;
  const Tensor product = (is_one(factor) ? left : left * factor) * widen(tensor2);
  return (widen(self) + product).to(dtype);
}

Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
               const Scalar& value) {
  const Tensor left = widen(tensor1);
  const Tensor quotient = (is_one(value) ? left : left * value) / widen(tensor2);
  return (widen(self) + quotient).to(self.scalar_type());
}

// From the nearer end, as the kernel does, so that both ends are met exactly.
Tensor lerp_scalar(const Tensor& self, const Tensor& end, const Scalar& weight) {
  const double w = weight.to<double>();
  const Tensor from = widen(self);
  const Tensor to = widen(end);
  const Tensor way = to - from;
  const Tensor result = std::abs(w) < 0.5 ? from + way * weight : to - way * (1 - w);
  return in_order_of_operands({self, end}, result.to(self.scalar_type()));
}

Tensor lerp_tensor(const Tensor& self, const Tensor& end, const Tensor& weight) {
  const Tensor w = widen(weight);
  const Tensor from = widen(self);
  const Tensor to = widen(end);
  const Tensor way = to - from;
  const Tensor result = at::where(w.abs() < 0.5, from + way * w, to - way * one_minus(w));
  return in_order_of_operands({self, end, weight}, result.to(self.scalar_type()));
}

Tensor rsub_tensor(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return other.sub(self, alpha);
}

Tensor rsub_scalar(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  // Promoted first: the negation of an unsigned number is not what is added.
  const Tensor promoted = self.to(promoted_dtype(self, other));
  if (is_one(alpha)) return promoted.neg() + other;
  return constant(promoted, other).sub(promoted, alpha);
}

Tensor clamp_min(const Tensor& self, const Scalar& min) { return self.clamp(min, {}); }
Tensor clamp_max(const Tensor& self, const Scalar& max) { return self.clamp({}, max); }
Tensor clamp_min_tensor(const Tensor& self, const Tensor& min) { return self.maximum(min); }
Tensor clamp_max_tensor(const Tensor& self, const Tensor& max) { return self.minimum(max); }

Tensor clamp_tensor(const Tensor& self, const std::optional<Tensor>& min,
                    const std::optional<Tensor>& max) {
  TORCH_CHECK(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
  const Tensor above = min ? self.maximum(*min) : self;
  return max ? above.minimum(*max) : above;
}

// fmax and fmin take the other number where one is NaN.
Tensor fmax(const Tensor& self, const Tensor& other) {
  return at::where((self >= other).logical_or(other.isnan()), self, other);
}

Tensor fmin(const Tensor& self, const Tensor& other) {
  return at::where((self <= other).logical_or(other.isnan()), self, other);
}

Tensor floor_divide(const Tensor& self, const Tensor& other) { return self.div(other, "floor"); }

Tensor floor_divide_scalar(const Tensor& self, const Scalar& other) {
  return self.div(other, "floor");
}

Tensor frac(const Tensor& self) { return self - self.trunc(); }

// In single precision, as the operators do, which multiply by a float.
Tensor scaled(const Tensor& self, double factor) {
  return (widen_to_float(self) * factor).to(float_result_dtype(self.scalar_type()));
}

Tensor deg2rad(const Tensor& self) { return scaled(self, std::numbers::pi / 180); }
Tensor rad2deg(const Tensor& self) { return scaled(self, 180 / std::numbers::pi); }

Tensor heaviside(const Tensor& self, const Tensor& values) {
  return at::where(self == 0, values, (self > 0).to(self.scalar_type()));
}

Tensor sgn(const Tensor& self) { return self.sign(); }

// Integers are never infinite.
Tensor never(const Tensor& self) { return self.ne(self); }

Tensor isinf(const Tensor& self) {
  return self.is_floating_point() ? self.abs() == kInfinity : never(self);
}

Tensor isposinf(const Tensor& self) {
  return self.is_floating_point() ? self == kInfinity : never(self);
}

Tensor isneginf(const Tensor& self) {
  return self.is_floating_point() ? self == -kInfinity : never(self);
}

// The largest number of a floating dtype.
double largest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return static_cast<double>(std::numeric_limits<c10::Half>::max());
    case at::kBFloat16:
      return static_cast<double>(std::numeric_limits<c10::BFloat16>::max());
    case at::kFloat:
      return static_cast<double>(std::numeric_limits<float>::max());
    default:
      return std::numeric_limits<double>::max();
  }
}

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!self.is_floating_point()) return self.clone();
  const double limit = largest(self.scalar_type());
  const Tensor numbers = at::where(self.isnan(), constant(self, nan.value_or(0)), self);
  const Tensor below =
      at::where(self == kInfinity, constant(self, posinf.value_or(limit)), numbers);
  return at::where(self == -kInfinity, constant(self, neginf.value_or(-limit)), below);
}

// The operator starts from a contiguous copy of `self`, in the shape that it and the mask make.
Tensor masked_fill_tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill only supports a 0-dimensional value tensor");
  return at::where(mask, value.to(self.scalar_type()), self.contiguous()).contiguous();
}

Tensor masked_fill_scalar(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return masked_fill_tensor(self, mask, constant(self, value));
}

}  // namespace

DecompositionTable pointwise_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row_of_floats<ops::addcdiv>("_to_copy, add, div, mul", addcdiv),
      row<ops::addcmul>("_to_copy, add, mul", addcmul),
      row<ops::clamp_Tensor>("maximum, minimum", clamp_tensor),
      row<ops::clamp_max>("clamp", clamp_max),
      row<ops::clamp_max_Tensor>("minimum", clamp_max_tensor),
      row<ops::clamp_min>("clamp", clamp_min),
      row<ops::clamp_min_Tensor>("maximum", clamp_min_tensor),
      row<ops::deg2rad>("_to_copy, mul", deg2rad),
      row<ops::floor_divide>("div", floor_divide),
      row<ops::floor_divide_Scalar>("div", floor_divide_scalar),
      row<ops::fmax>("ge, isnan, logical_or, where", fmax),
      row<ops::fmin>("isnan, le, logical_or, where", fmin),
      row_of_floats<ops::frac>("sub, trunc", frac),
      row<ops::heaviside>("_to_copy, eq, gt, where", heaviside),
      row<ops::isinf>("abs, eq, ne", isinf),
      row<ops::isneginf>("eq, ne", isneginf),
      row<ops::isposinf>("eq, ne", isposinf),
      row_of_floats<ops::lerp_Scalar>("_to_copy, add, clone, mul, permute, sub", lerp_scalar),
      row_of_floats<ops::lerp_Tensor>(
          "_to_copy, abs, add, clone, lt, mul, neg, permute, sub, where", lerp_tensor),
      row<ops::masked_fill_Scalar>("clone, full, where", masked_fill_scalar),
      row<ops::masked_fill_Tensor>("clone, where", masked_fill_tensor),
      row<ops::nan_to_num>("clone, eq, full, isnan, where", nan_to_num),
      row<ops::rad2deg>("_to_copy, mul", rad2deg),
      row<ops::rsub_Scalar>("_to_copy, add, full, neg, sub", rsub_scalar),
      row<ops::rsub_Tensor>("sub", rsub_tensor),
      row<ops::sgn>("sign", sgn),
  });
  return table;
}

}  // namespace assay::autograd
