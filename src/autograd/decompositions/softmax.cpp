// The softmax family.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_safe_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/logsumexp_ops.h>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Tensor;

at::ScalarType softmax_dtype(const Tensor& self, bool half_to_float) {
  return half_to_float ? compute_dtype(self.scalar_type()) : self.scalar_type();
}

// `self` less its largest values, so that no power overflows. ATen's kernels give contiguous
// results, whatever the input. No elements have no largest one.
Tensor shifted(const Tensor& self, std::int64_t dim) {
  const Tensor x = widen(self.contiguous());
  return x.numel() == 0 ? x : x - x.amax({dim}, true);
}

Tensor softmax(const Tensor& self, std::int64_t dim, bool half_to_float) {
  const Tensor power = shifted(self, dim).exp();
  return (power / power.sum({dim}, true)).to(softmax_dtype(self, half_to_float));
}

Tensor log_softmax(const Tensor& self, std::int64_t dim, bool half_to_float) {
  const Tensor x = shifted(self, dim);
  const Tensor sum = x.exp().sum({dim}, true);
  // The kernel for the last dimension keeps the sums in the tensor's own dtype.
  const bool is_last = self.dim() == 0 || dim == -1 || dim == self.dim() - 1;
  const at::ScalarType kept = is_last ? self.scalar_type() : sum.scalar_type();
  const Tensor shift = rounded(rounded(sum, kept).log(), kept);
  return (x - shift).to(softmax_dtype(self, half_to_float));
}

Tensor softmax_backward(const Tensor& grad, const Tensor& output, std::int64_t dim,
                        at::ScalarType input_dtype) {
  const Tensor y = widen(output.contiguous());
  const Tensor product = widen(grad.contiguous()) * y;
  return (product - y * product.sum({dim}, true)).to(input_dtype);
}

Tensor log_softmax_backward(const Tensor& grad, const Tensor& output, std::int64_t dim,
                            at::ScalarType input_dtype) {
  const Tensor g = widen(grad.contiguous());
  const Tensor y = widen(output.contiguous());
  return (g - y.exp() * g.sum({dim}, true)).to(input_dtype);
}

// A row of nothing but minus infinity gives zeros and not NaN: no position of it is attended to.
Tensor safe_softmax(const Tensor& self, std::int64_t dim, std::optional<at::ScalarType> dtype) {
  const Tensor x = dtype ? self.to(*dtype) : self;
  const Tensor masked_out = (self != -kInfinity).any(dim, true).logical_not();
  return zero_where(masked_out, softmax(x, dim, false));
}

Tensor logsumexp(const Tensor& self, at::IntArrayRef dims, bool keepdim) {
  // ATen makes it of operators, each of which rounds.
  const Tensor x = self.to(float_result_dtype(self.scalar_type()));
  const auto over = reduced_dims(x, dims);
  if (x.numel() == 0) return sum_over(x.exp(), over, keepdim).log();
  const Tensor largest = x.amax(over, true);
  // Infinity less itself would be NaN.
  const Tensor shift = zero_where(largest.abs() == kInfinity, largest);
  const Tensor sum = sum_over((x - shift).exp(), over, keepdim);
  const Tensor shift_of_sum = keepdim ? shift : shift.squeeze(over);
  return sum.log() + shift_of_sum;
}

}  // namespace

DecompositionTable softmax_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::_log_softmax>("_to_copy, amax, clone, exp, log, sub, sum", log_softmax),
      row<ops::_log_softmax_backward_data>("_to_copy, clone, exp, mul, sub, sum",
                                           log_softmax_backward),
      row<ops::_safe_softmax>(
          "_to_copy, amax, any, clone, div, exp, full, logical_not, ne, sub, sum, where",
          safe_softmax),
      row<ops::_softmax>("_to_copy, amax, clone, div, exp, sub, sum", softmax),
      row<ops::_softmax_backward_data>("_to_copy, clone, mul, sub, sum", softmax_backward),
      row<ops::logsumexp>("_to_copy, abs, add, amax, eq, exp, full, log, squeeze, sub, sum, where",
                          logsumexp),
  });
  return table;
}

}  // namespace assay::autograd
