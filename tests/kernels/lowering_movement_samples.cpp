#include <array>

#include "lowering_samples.h"

namespace assay::kernels {

std::span<const LoweringSample> movement_samples() {
  using enum SampleDtypes;
  static constexpr auto kSamples = std::to_array<LoweringSample>({
      // Scans.
      {"aten.cumprod.default(x, 1)"},
      {"aten.cumsum.default(x, 0)"},
      {"aten.cumsum.default(cube, -2, dtype = torch.float64)"},
      {"aten.cumsum.default(one, 0)"},
      {"aten.cumsum.default(empty, 0)"},
      // Joins.
      {"aten.cat.default([x, y, x], 1)"},
      {"aten.cat.default([x, single])"},
      {"aten.cat.default([x, empty])"},
      {"aten.constant_pad_nd.default(x, [1, 2])"},
      {"aten.constant_pad_nd.default(image, [1, -1, -2, 3], 7)"},
      {"aten.constant_pad_nd.default(empty, [0, 0, 2, 1], 3)"},
      {"aten.diagonal_scatter.default(x, row, -2)", none},
      {"aten.flip.default(cube, [0, -1])"},
      {"aten.flip.default(one, [0])"},
      {"aten.repeat.default(row, [3, 2])"},
      {"aten.repeat.default(x, [2, 1, 3])"},
      {"aten.repeat.default(x, [0, 1])"},
      {"aten.roll.default(row, [-2])"},
      {"aten.roll.default(image, [2, -1], [0, 3])"},
      {"aten.roll.default(x, [0], [1])"},
      {"aten.select_backward.default(row, [4, 6], 0, -1)"},
      {"aten.select_scatter.default(x, row, 0, 2)"},
      {"aten.slice_backward.default(x, [9, 6], 0, 2, 6, 1)"},
      {"aten.slice_backward.default(x, [9, 6], 0, 1, 9, 2)"},
      {"aten.slice_scatter.default(cube, x, 0, 0, 0)", none},
      {"aten.slice_scatter.default(x, col, 1, 3, 4)"},
      {"aten.slice_scatter.default(x, x, 1, 0, 99)"},
      {"aten.stack.default([x, y], 2)"},
      {"aten.stack.default([x, single], -3)"},
      {"aten.tril.default(x, 1)"},
      {"aten.tril.default(cube, -1)"},
      {"aten.triu.default(cube)"},
      // Pooling.
      {"aten._adaptive_avg_pool2d.default(image, [3, 2])", floats},
      {"aten._adaptive_avg_pool3d.default(image, [3, 2, 1])", floats},
      {"aten.avg_pool2d.default(image, [3, 2])", floats},
      {"aten.avg_pool2d.default(image, [3], [2], [1], True)", floats},
      {"aten.avg_pool2d.default(image, [3], [2], [1], True, False)", floats},
      {"aten.avg_pool2d.default(image, [3], [2], [1], False, True, 5)", floats},
      {"aten.avg_pool3d.default(image, [2], [1])", floats},
      {"aten.max_pool2d_with_indices.default(image, [3], [2], [1])", floats, 2},
      {"aten.max_pool2d_with_indices.default(image, [2, 2], [1], [0], [2, 1])", floats, 2},
      {"aten.max_pool2d_with_indices.default(holes, [2, 3], [1], [1])", floats, 2},
      {"aten.max_pool3d_with_indices.default(image, [2], [1], [1])", floats, 2},
      // Resampling.
      {"aten.upsample_bilinear2d.default(image, [9, 11], False)", floats},
      {"aten.upsample_bilinear2d.default(image, [9, 11], True)", floats},
      {"aten.upsample_bilinear2d.default(image, [12, 8], False, 2.0, 2.0)", floats},
      {"aten.upsample_bilinear2d.default(image, [3, 3], False)", floats},
      {"aten.upsample_linear1d.default(cube, [9], False)", floats},
      {"aten.upsample_trilinear3d.default(volume, [5, 3, 7], True)", floats},
      // Gathers.
      {"aten._unsafe_index.Tensor(x, [wrapped])"},
      {"aten.embedding.default(x, labels)"},
      {"aten.gather.default(x, 1, labels)"},
      {"aten.gather.default(x, 0, labels)"},
      {"aten.index.Tensor(x, [wrapped])"},
      {"aten.index.Tensor(x, [None, labels])"},
      {"aten.index.Tensor(image, [None, None, wrapped, wrapped])"},
      {"aten.index.Tensor(image, [None, None, wrapped])"},
      {"aten.index.Tensor(x, [labels, labels])"},
      {"aten.index.Tensor(image, [None, None, wrapped, labels])", none},
      {"aten.index_select.default(x, 0, wrapped)"},
      {"aten.take.default(x, labels)"},
      // Scatters.
      {"aten._unsafe_index_put.default(x, [wrapped], row)"},
      {"aten.embedding_dense_backward.default(cube, few, 7, 2, False)", floats},
      {"aten.index_add.default(x, 0, near, y)"},
      {"aten.index_add.default(x, 0, near, y, alpha = 2)"},
      {"aten.index_copy.default(x, 0, near, y)"},
      {"aten.index_fill.int_Scalar(x, 1, near, 3)"},
      {"aten.index_put.default(x, [wrapped], row)"},
      {"aten.index_put.default(x, [wrapped], row, True)"},
      {"aten.index_put.default(x, [None, labels], one, True)"},
      {"aten.index_put.default(x, [mask], one)"},
      {"aten.scatter.src(x, 1, labels, y)"},
      {"aten.scatter.value(x, 0, labels, 3)"},
      {"aten.scatter_add.default(x, 1, labels, y)"},
  });
  return kSamples;
}

}  // namespace assay::kernels
