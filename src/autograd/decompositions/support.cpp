// What decompositions of several themes use.
#include "autograd/decompositions/support.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <numeric>

namespace assay::autograd {

namespace {

// The dimensions in the order of their strides, largest first.
std::vector<std::int64_t> order_of_strides(at::IntArrayRef sizes, at::IntArrayRef strides) {
  std::vector<std::int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [](at::IntArrayRef values, std::int64_t dim) {
    return values[static_cast<std::size_t>(dim)];
  };
  // The stride of a dimension of size one means nothing; such dimensions stay where they are among
  // equals because the sort is stable.
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t left, std::int64_t right) {
    return at(strides, left) > at(strides, right);
  });
  return order;
}

// The permutation that undoes `order`.
std::vector<std::int64_t> inverse_permutation(at::IntArrayRef order) {
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return inverse;
}

// Whether a pointwise operator puts dimension `outer` of its result inside of `inner`: positive if
// it does, negative if not, and 0 if the operands do not tell. The first that tells decides.
int is_inside_out(at::ArrayRef<at::Tensor> operands, at::IntArrayRef sizes, std::int64_t outer,
                  std::int64_t inner) {
  const auto rank = static_cast<std::int64_t>(sizes.size());
  for (const at::Tensor& operand : operands) {
    const auto stride = [&](std::int64_t dim) {
      const std::int64_t own = dim - rank + operand.dim();
      const bool is_broadcast =
          own < 0 || (operand.size(own) == 1 && sizes[static_cast<std::size_t>(dim)] != 1);
      return is_broadcast ? 0 : operand.stride(own);
    };
    const std::int64_t first = stride(outer);
    const std::int64_t second = stride(inner);
    if (first == 0 || second == 0) continue;
    if (first != second) return first < second ? 1 : -1;
    if (sizes[static_cast<std::size_t>(inner)] > sizes[static_cast<std::size_t>(outer)]) return 1;
  }
  return 0;
}

// The dimensions of the result of a pointwise operator in the order in which they are in memory,
// the outermost first.
std::vector<std::int64_t> memory_order(at::ArrayRef<at::Tensor> operands, at::IntArrayRef sizes) {
  std::vector<std::int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  // By insertion from the innermost on: where nothing tells, dimensions stay as they are.
  for (std::size_t next = order.size(); next-- > 0;) {
    std::size_t at = next;
    for (std::size_t other = next + 1; other < order.size(); ++other) {
      const int swaps = is_inside_out(operands, sizes, order[at], order[other]);
      if (swaps < 0) break;
      if (swaps == 0) continue;
      std::swap(order[at], order[other]);
      at = other;
    }
  }
  return order;
}

}  // namespace

at::ScalarType compute_dtype(at::ScalarType dtype) { return at::toOpMathType(dtype); }

at::Tensor widen(const at::Tensor& tensor) {
  return tensor.to(compute_dtype(tensor.scalar_type()));
}

at::Tensor rounded(const at::Tensor& widened, at::ScalarType dtype) {
  return widened.to(dtype).to(widened.scalar_type());
}

double rounded(double number, at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return static_cast<float>(c10::Half(static_cast<float>(number)));
    case at::kBFloat16:
      return static_cast<float>(c10::BFloat16(static_cast<float>(number)));
    case at::kFloat:
      return static_cast<float>(number);
    default:
      return number;
  }
}

at::ScalarType float_result_dtype(at::ScalarType dtype) {
  return at::isIntegralType(dtype, /*includeBool=*/true) ? c10::get_default_dtype_as_scalartype()
                                                         : dtype;
}

at::Tensor widen_to_float(const at::Tensor& tensor) {
  return tensor.to(compute_dtype(float_result_dtype(tensor.scalar_type())));
}

at::ScalarType promoted_dtype(const at::Tensor& left, const at::Tensor& right) {
  return at::native::result_type({left, right});
}

at::ScalarType promoted_dtype(const at::Tensor& left, const at::Scalar& right) {
  using at::native::update_result_type_state;
  return at::native::result_type(
      update_result_type_state(right, update_result_type_state(left, {})));
}

at::Tensor constant(const at::Tensor& like, const at::Scalar& value) {
  return at::full({}, value, like.options());
}

at::Tensor one_minus(const at::Tensor& tensor) { return tensor.neg() + 1; }

at::Tensor square(const at::Tensor& tensor) { return tensor * tensor; }

at::Tensor zero_where(const at::Tensor& condition, const at::Tensor& otherwise) {
  return at::where(condition, constant(otherwise, 0), otherwise);
}

std::vector<std::int64_t> reduced_dims(const at::Tensor& tensor, at::OptionalIntArrayRef dims) {
  std::vector<std::int64_t> reduced;
  if (dims.has_value() && !dims->empty()) {
    reduced = dims->vec();
    for (std::int64_t& dim : reduced) dim = at::maybe_wrap_dim(dim, tensor.dim());
    // A scalar may be reduced over its dimension 0, which it does not have.
    if (tensor.dim() == 0) reduced.clear();
    return reduced;
  }
  reduced.resize(static_cast<std::size_t>(tensor.dim()));
  std::iota(reduced.begin(), reduced.end(), 0);
  return reduced;
}

std::int64_t count_in(const at::Tensor& tensor, at::IntArrayRef dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= tensor.size(dim);
  return count;
}

at::Tensor sum_over(const at::Tensor& tensor, at::IntArrayRef dims, bool keepdim) {
  return dims.empty() ? tensor : tensor.sum(dims, keepdim);
}

at::Tensor mean_over(const at::Tensor& tensor, at::IntArrayRef dims, bool keepdim) {
  return sum_over(tensor, dims, keepdim) / count_in(tensor, dims);
}

std::vector<std::int64_t> strides_like(const at::Tensor& like,
                                       std::optional<at::MemoryFormat> format) {
  switch (format.value_or(at::MemoryFormat::Preserve)) {
    case at::MemoryFormat::Preserve:
      return like.is_non_overlapping_and_dense()
                 ? like.strides().vec()
                 : at::infer_dense_strides(like.sizes(), like.strides());
    case at::MemoryFormat::ChannelsLast:
      return c10::get_channels_last_strides_2d(like.sizes());
    case at::MemoryFormat::ChannelsLast3d:
      return c10::get_channels_last_strides_3d(like.sizes());
    default:
      return at::detail::defaultStrides(like.sizes());
  }
}

at::Tensor full_strided(at::IntArrayRef sizes, at::IntArrayRef strides, const at::Scalar& value,
                        const at::TensorOptions& options) {
  const std::vector<std::int64_t> order = order_of_strides(sizes, strides);
  if (std::is_sorted(order.begin(), order.end())) return at::full(sizes, value, options);
  std::vector<std::int64_t> in_memory;
  in_memory.reserve(order.size());
  for (const std::int64_t dim : order) in_memory.push_back(sizes[static_cast<std::size_t>(dim)]);
  return at::full(in_memory, value, options).permute(inverse_permutation(order));
}

at::Tensor in_memory_order_of(const at::Tensor& like, const at::Tensor& values) {
  const std::vector<std::int64_t> order =
      order_of_strides(like.sizes(), strides_like(like, at::MemoryFormat::Preserve));
  if (std::is_sorted(order.begin(), order.end())) {
    return values.clone(at::MemoryFormat::Contiguous);
  }
  return values.permute(order)
      .clone(at::MemoryFormat::Contiguous)
      .permute(inverse_permutation(order));
}

at::Tensor in_order_of_operands(at::ArrayRef<at::Tensor> operands, const at::Tensor& values) {
  const std::vector<std::int64_t> order = memory_order(operands, values.sizes());
  std::int64_t expected = 1;
  bool is_same = true;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    is_same = is_same && (values.size(*at) <= 1 || values.stride(*at) == expected);
    expected *= values.size(*at);
  }
  if (is_same || expected == 0) return values;
  if (std::is_sorted(order.begin(), order.end())) {
    return values.clone(at::MemoryFormat::Contiguous);
  }
  return values.permute(order)
      .clone(at::MemoryFormat::Contiguous)
      .permute(inverse_permutation(order));
}

at::Tensor along(const at::Tensor& vector, std::int64_t dim, std::int64_t dims) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dims), 1);
  shape[static_cast<std::size_t>(dim)] = vector.numel();
  return vector.view(shape);
}

}  // namespace assay::autograd
