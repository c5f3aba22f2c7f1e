// Tensors that are made of a number, as `full`, and counting, as `arange` with all arguments.
// Uninitialised tensors stay as they are, and so does everything random: a traced program must draw
// the numbers that the program draws.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/arange_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/eye_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like_ops.h>
#include <ATen/ops/new_full_ops.h>
#include <ATen/ops/new_ones_ops.h>
#include <ATen/ops/new_zeros_ops.h>
#include <ATen/ops/ones_like_ops.h>
#include <ATen/ops/ones_ops.h>
#include <ATen/ops/scalar_tensor_ops.h>
#include <ATen/ops/zero_ops.h>
#include <ATen/ops/zeros_like_ops.h>
#include <ATen/ops/zeros_ops.h>
#include <c10/core/DefaultDtype.h>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Scalar;
using at::Tensor;
using Dtype = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;
using Pinned = std::optional<bool>;
using Format = std::optional<at::MemoryFormat>;

at::TensorOptions options_of(Dtype dtype, Layout layout, Device device, Pinned pinned) {
  return at::TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pinned);
}

// The options of `self`, where others are not given.
at::TensorOptions options_like(const Tensor& self, Dtype dtype, Layout layout, Device device,
                               Pinned pinned) {
  return self.options().merge_in(options_of(dtype, layout, device, pinned));
}

template <int value>
Tensor filled(at::IntArrayRef size, Dtype dtype, Layout layout, Device device, Pinned pinned) {
  // `full` would take the number's own dtype.
  const Dtype known = dtype.value_or(c10::get_default_dtype_as_scalartype());
  return at::full(size, value, options_of(known, layout, device, pinned));
}

Tensor scalar_tensor(const Scalar& value, Dtype dtype, Layout layout, Device device,
                     Pinned pinned) {
  const Dtype known = dtype.value_or(c10::get_default_dtype_as_scalartype());
  return at::full({}, value, options_of(known, layout, device, pinned));
}

Tensor full_like(const Tensor& self, const Scalar& value, Dtype dtype, Layout layout, Device device,
                 Pinned pinned, Format format) {
  return full_strided(self.sizes(), strides_like(self, format), value,
                      options_like(self, dtype, layout, device, pinned));
}

template <int value>
Tensor filled_like(const Tensor& self, Dtype dtype, Layout layout, Device device, Pinned pinned,
                   Format format) {
  return full_like(self, value, dtype, layout, device, pinned, format);
}

Tensor new_full(const Tensor& self, at::IntArrayRef size, const Scalar& value, Dtype dtype,
                Layout layout, Device device, Pinned pinned) {
  return at::full(size, value, options_like(self, dtype, layout, device, pinned));
}

template <int value>
Tensor new_filled(const Tensor& self, at::IntArrayRef size, Dtype dtype, Layout layout,
                  Device device, Pinned pinned) {
  return new_full(self, size, value, dtype, layout, device, pinned);
}

Tensor fill_scalar(const Tensor& self, const Scalar& value) {
  return full_like(self, value, {}, {}, {}, {}, {});
}

Tensor zero(const Tensor& self) { return fill_scalar(self, 0); }

// What `self` becomes when `source` is copied into it: only its sizes, strides and dtype matter.
Tensor copy(const Tensor& self, const Tensor& source, bool /*non_blocking*/) {
  return in_memory_order_of(self, source.to(self.scalar_type()).expand(self.sizes()));
}

Tensor fill_tensor(const Tensor& self, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor");
  return copy(self, value, false);
}

Tensor arange(const Scalar& end, Dtype dtype, Layout layout, Device device, Pinned pinned) {
  return at::arange(0, end, 1, options_of(dtype, layout, device, pinned));
}

Tensor arange_start(const Scalar& start, const Scalar& end, Dtype dtype, Layout layout,
                    Device device, Pinned pinned) {
  return at::arange(start, end, 1, options_of(dtype, layout, device, pinned));
}

Tensor eye_m(std::int64_t rows, std::int64_t columns, Dtype dtype, Layout layout, Device device,
             Pinned pinned) {
  const at::TensorOptions options = options_of(at::kLong, layout, device, pinned);
  const Tensor row = at::arange(0, rows, 1, options).unsqueeze(-1);
  const Tensor column = at::arange(0, columns, 1, options);
  return (row == column).to(dtype.value_or(c10::get_default_dtype_as_scalartype()));
}

Tensor eye(std::int64_t size, Dtype dtype, Layout layout, Device device, Pinned pinned) {
  return eye_m(size, size, dtype, layout, device, pinned);
}

}  // namespace

DecompositionTable creation_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::arange>("arange", arange),
      row<ops::arange_start>("arange", arange_start),
      row_of_dense<ops::copy>("_to_copy, clone, expand, permute", copy),
      row<ops::eye>("_to_copy, arange, eq, unsqueeze", eye),
      row<ops::eye_m>("_to_copy, arange, eq, unsqueeze", eye_m),
      row_of_dense<ops::fill_Scalar>("full, permute", fill_scalar),
      row_of_dense<ops::fill_Tensor>("clone, expand, permute", fill_tensor),
      row<ops::full_like>("full, permute", full_like),
      row<ops::new_full>("full", new_full),
      row<ops::new_ones>("full", new_filled<1>),
      row<ops::new_zeros>("full", new_filled<0>),
      row<ops::ones>("full", filled<1>),
      row<ops::ones_like>("full, permute", filled_like<1>),
      row<ops::scalar_tensor>("full", scalar_tensor),
      row_of_dense<ops::zero>("full, permute", zero),
      row<ops::zeros>("full", filled<0>),
      row<ops::zeros_like>("full, permute", filled_like<0>),
  });
  return table;
}

}  // namespace assay::autograd
