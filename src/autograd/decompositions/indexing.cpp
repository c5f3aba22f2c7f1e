// Reading and writing at indices, as `index` and `index_put`.
#include <ATen/WrapDimUtils.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_unsafe_index_ops.h>
#include <ATen/ops/_unsafe_index_put_ops.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_fill_ops.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/put_ops.h>
#include <ATen/ops/take_ops.h>

#include <optional>

#include "autograd/decompositions/row.h"
#include "autograd/decompositions/support.h"
#include "autograd/decompositions/tables.h"

namespace assay::autograd {

namespace {

namespace ops = at::_ops;
using at::Scalar;
using at::Tensor;
using Indices = c10::List<std::optional<Tensor>>;

// `[:, ..., index]`: one dimension indexed, those before it whole.
Indices at_dim(const Tensor& index, std::int64_t dim) {
  Indices indices;
  for (std::int64_t i = 0; i < dim; ++i) indices.push_back(std::nullopt);
  indices.push_back(index);
  return indices;
}

// These operators take a scalar for a vector of one element.
Tensor as_vector(const Tensor& tensor) { return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor; }

Tensor like_scalar(const Tensor& result, const Tensor& self) {
  return self.dim() == 0 ? result.squeeze(0) : result;
}

Tensor unsafe_index(const Tensor& self, const Indices& indices) { return at::index(self, indices); }

Tensor unsafe_index_put(const Tensor& self, const Indices& indices, const Tensor& values,
                        bool accumulate) {
  return at::index_put(self, indices, values, accumulate);
}

Tensor take(const Tensor& self, const Tensor& index) {
  return at::index(self.contiguous().view(-1), at_dim(index, 0));
}

Tensor embedding_dense_backward(const Tensor& grad, const Tensor& indices, std::int64_t num_weights,
                                std::int64_t padding_idx, bool scale_grad_by_freq) {
  const Tensor rows = indices.to(at::kLong);
  Tensor g = grad;
  if (scale_grad_by_freq) {
    const Tensor none = at::full({num_weights}, 0, rows.options());
    const Tensor one = at::full({}, 1, rows.options());
    const Tensor counts = at::index_put(none, at_dim(rows, 0), one, true);
    g = (widen(g) / at::index(counts, at_dim(rows, 0)).unsqueeze(-1)).to(grad.scalar_type());
  }
  g = zero_where((rows == padding_idx).unsqueeze(-1), g);
  const Tensor zeros = at::full({num_weights, grad.size(-1)}, 0, g.options());
  return at::index_put(zeros, at_dim(rows, 0), g, true);
}

Tensor index_put_at(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& values,
                    bool accumulate) {
  const std::int64_t at = at::maybe_wrap_dim(dim, self.dim());
  const Indices indices = at_dim(as_vector(index), at);
  return like_scalar(at::index_put(as_vector(self), indices, values, accumulate), self);
}

Tensor index_fill_tensor(const Tensor& self, std::int64_t dim, const Tensor& index,
                         const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor");
  return index_put_at(self, dim, index, value.to(self.scalar_type()), false);
}

Tensor index_fill_scalar(const Tensor& self, std::int64_t dim, const Tensor& index,
                         const Scalar& value) {
  return index_fill_tensor(self, dim, index, constant(self, value));
}

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  const Tensor flat = self.contiguous().view(-1);
  const Tensor result = at::index_put(flat, at_dim(index.contiguous().view(-1), 0),
                                      source.contiguous().view(-1), accumulate);
  return in_memory_order_of(self, result.view(self.sizes()));
}

}  // namespace

DecompositionTable indexing_decompositions() {
  static const auto table = std::to_array<Decomposition>({
      row<ops::_unsafe_index_Tensor>("index", unsafe_index),
      row<ops::_unsafe_index_put>("index_put", unsafe_index_put),
      row<ops::embedding_dense_backward>(
          "_to_copy, div, eq, full, index, index_put, unsqueeze, where", embedding_dense_backward),
      row<ops::index_fill_int_Scalar>("full, index_put", index_fill_scalar),
      row<ops::index_fill_int_Tensor>("index_put, unsqueeze", index_fill_tensor),
      row<ops::put>("clone, index_put, permute, view", put),
      row<ops::take>("clone, index, view", take),
  });
  return table;
}

}  // namespace assay::autograd
