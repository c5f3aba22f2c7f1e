/// \file Which library multiplies matrices. ATen asks its BLAS, which in PyTorch's wheels is MKL;
/// on CPUs that are not Intel's it leaves half of their vectors' width unused. oneDNN, which
/// libtorch has too, uses all of it and is about twice as fast there.
#pragma once

#include <ATen/core/Tensor.h>

#include "graph/graph.h"
#include "kernels/ir.h"

namespace assay::kernels {

/// Whether oneDNN is to multiply these two matrices, or batches of matrices: by the setting
/// `matmul`, the CPU, dtypes, layouts and sizes, never by measuring, so that results do not change
/// from run to run.
bool prefers_onednn(const TensorRef& left, const TensorRef& right);

void multiply_by_onednn(const at::Tensor& left, const at::Tensor& right, at::Tensor& out);

/// Whether the graph has products that gain by the pass `split_addmm`: `addmm` becomes a product,
/// which oneDNN computes, and a sum, which is fused with what follows.
bool gains_by_split_addmm(const graph::Graph& graph);

/// Whether the graph has attention that gains by the pass `products_of_attention`, which is for
/// inference.
bool gains_by_products_of_attention(const graph::Graph& graph);

}  // namespace assay::kernels
