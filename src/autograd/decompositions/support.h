/// \file What decompositions of several themes use.
///
/// Decompositions are written with methods and operators of at::Tensor, with two exceptions. Of
/// `1 - x` ATen makes an in-place operation; it is `one_minus(x)` here. And `x.square()` and the
/// like are avoided where the table has a row for them, so that what a row calls needs no further
/// decomposing.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace assay::autograd {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The dtype in which ATen's kernels compute with values of `dtype`: float for half and bfloat16.
at::ScalarType compute_dtype(at::ScalarType dtype);

/// `tensor` in the dtype in which its kernels would compute with it.
at::Tensor widen(const at::Tensor& tensor);

/// `tensor` with integers and bools as the default floating dtype, and then widened: for operators
/// that take integers and give floats.
at::Tensor widen_to_float(const at::Tensor& tensor);

/// What eager's next kernel sees of a value that it computed, widened, and stored in a tensor of
/// `dtype`. Where kernels of half and bfloat16 round in between, a decomposition does too.
at::Tensor rounded(const at::Tensor& widened, at::ScalarType dtype);
/// A number as `dtype` holds it.
double rounded(double number, at::ScalarType dtype);

/// The floating dtype that an operator gives for values of `dtype`.
at::ScalarType float_result_dtype(at::ScalarType dtype);

/// The dtype of an operation on both, by PyTorch's rules of promotion.
at::ScalarType promoted_dtype(const at::Tensor& left, const at::Tensor& right);
at::ScalarType promoted_dtype(const at::Tensor& left, const at::Scalar& right);

/// A tensor without dimensions, for `where`.
at::Tensor constant(const at::Tensor& like, const at::Scalar& value);

at::Tensor one_minus(const at::Tensor& tensor);
at::Tensor square(const at::Tensor& tensor);

/// `where(condition, 0, otherwise)`.
at::Tensor zero_where(const at::Tensor& condition, const at::Tensor& otherwise);

/// The dimensions that a reduction is over: those given, made non-negative, or all if none are.
std::vector<std::int64_t> reduced_dims(const at::Tensor& tensor, at::OptionalIntArrayRef dims);

/// The number of elements in some of a tensor's dimensions.
std::int64_t count_in(const at::Tensor& tensor, at::IntArrayRef dims);

/// Sum over `dims`, which is nothing to do if there are none (ATen would reduce all).
at::Tensor sum_over(const at::Tensor& tensor, at::IntArrayRef dims, bool keepdim);

/// Mean over `dims`, in the tensor's own dtype.
at::Tensor mean_over(const at::Tensor& tensor, at::IntArrayRef dims, bool keepdim);

/// The strides of `at::empty_like(like, format)`.
std::vector<std::int64_t> strides_like(const at::Tensor& like,
                                       std::optional<at::MemoryFormat> format);

/// A tensor filled with `value`, dense, with its dimensions in memory in the order of `strides`.
at::Tensor full_strided(at::IntArrayRef sizes, at::IntArrayRef strides, const at::Scalar& value,
                        const at::TensorOptions& options);

/// A copy of `values`, dense, with its dimensions in memory in the order of those of `like`.
at::Tensor in_memory_order_of(const at::Tensor& like, const at::Tensor& values);

/// `values` with the strides that one pointwise operator gives its result for `operands`, in their
/// order. Several operators in its place may give others.
at::Tensor in_order_of_operands(at::ArrayRef<at::Tensor> operands, const at::Tensor& values);

/// A per-channel tensor (or any one-dimensional one) in the shape that broadcasts along dimension
/// `dim` of a tensor with `dims` dimensions.
at::Tensor along(const at::Tensor& vector, std::int64_t dim, std::int64_t dims);

}  // namespace assay::autograd
