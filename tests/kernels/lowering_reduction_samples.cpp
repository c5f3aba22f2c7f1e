#include <array>

#include "lowering_samples.h"

namespace assay::kernels {

std::span<const LoweringSample> reduction_samples() {
  using enum SampleDtypes;
  static constexpr auto kSamples = std::to_array<LoweringSample>({
      {"aten.all.default(x)"},
      {"aten.all.dim(x, 1)"},
      {"aten.all.dims(cube, [0, 2], True)"},
      {"aten.amax.default(x, [1])"},
      {"aten.amax.default(edge)"},
      {"aten.amin.default(cube, [0, -1], True)"},
      {"aten.aminmax.default(x, dim = 1)", all, 2},
      {"aten.aminmax.default(x)", all, 2},
      {"aten.any.default(x)"},
      {"aten.any.dim(x, 0, True)"},
      {"aten.any.dims(cube, [0, 2])"},
      {"aten.argmax.default(x)"},
      {"aten.argmax.default(x, 1)"},
      {"aten.argmax.default(edge, 0, True)"},
      {"aten.argmin.default(cube, 1)"},
      {"aten.argmin.default(one)"},
      {"aten.binary_cross_entropy.default(unit, unit)", floats},
      {"aten.binary_cross_entropy.default(unit, unit, row, 2)", floats},
      {"aten.binary_cross_entropy.default(unit, unit, None, 0)", floats},
      {"aten.count_nonzero.default(x)"},
      {"aten.count_nonzero.dim_IntList(x, [0])"},
      {"aten.linalg_vector_norm.default(x)", floats},
      {"aten.linalg_vector_norm.default(x, 1, [1])", floats},
      {"aten.linalg_vector_norm.default(x, 0, [1])", floats},
      {"aten.linalg_vector_norm.default(x, 3, [0], True)", floats},
      {"aten.linalg_vector_norm.default(x, float('inf'), [1])", floats},
      {"aten.linalg_vector_norm.default(x, float('-inf'), [1])", floats},
      {"aten.logsumexp.default(x, [1])"},
      {"aten.max.default(edge)"},
      {"aten.max.dim(x, 0)", all, 2},
      {"aten.mean.default(x)"},
      {"aten.mean.dim(cube, [0, 1], True)"},
      {"aten.mean.dim(x, [1], dtype = torch.float64)"},
      {"aten.min.default(x)"},
      {"aten.min.dim(cube, 1, True)", all, 2},
      {"aten.nansum.default(edge)"},
      {"aten.prod.default(unit)"},
      {"aten.prod.dim_int(x, 1)"},
      {"aten.std.correction(x, [1])"},
      {"aten.std_mean.correction(cube, [0, 2], correction = 0, keepdim = True)", all, 2},
      {"aten.sum.default(x)"},
      {"aten.sum.default(empty)"},
      {"aten.sum.default(one)"},
      {"aten.sum.dim_IntList(x, [0])"},
      {"aten.sum.dim_IntList(empty, [0])"},
      {"aten.sum.dim_IntList(cube, [1, -1], True)"},
      {"aten.sum.dim_IntList(x, [], True, dtype = torch.float64)"},
      {"aten.sum.dim_IntList(one, [0])"},
      {"aten.var.correction(x, [0])"},
      {"aten.var.correction(x)"},
      {"aten.var_mean.correction(cube, [1], correction = 2)", all, 2},
  });
  return kSamples;
}

}  // namespace assay::kernels
