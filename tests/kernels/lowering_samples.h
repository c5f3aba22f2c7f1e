/// \file Sample calls for the rows of kernels/lower.h; each row must have one.
///
/// A sample is a call as it is written in a graph, over these inputs:
///
///   x, y       tensors of sizes 4, 6 (of the dtype of the run, as all but the last lines)
///   row, col   sizes 6, and 4, 1, to be broadcast
///   one        no dimensions
///   cube       sizes 2, 3, 4
///   image      sizes 2, 3, 6, 4
///   holes      sizes 1, 2, 5, 5, -infinity and NaN
///   volume     sizes 1, 2, 3, 4, 2
///   empty      sizes 0, 6
///   unit       sizes 4, 6, values between 0 and 1
///   edge       size 12, with the values where operators have corners: 0, -0, NaN, infinities, ...
///   mask       bool, sizes 4, 6
///   labels     int64, sizes 4, 6, values from 0 to 3
///   wrapped    int64, size 4, values from -4 to 3
///   near       int64, size 4, values from 0 to 3
///   few        int64, sizes 2, 3, values from 0 to 6
///   single     float32, sizes 4, 6
///
/// The result is `r`; further lines may take it apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::kernels {

enum class SampleDtypes {
  all,       ///< Every dtype of kernels; those that eager does not support are left out.
  floats,    ///< float, double, half, bfloat16
  integers,  ///< bool too
  none,      ///< One run, in float: nothing depends on the dtype.
};

struct LoweringSample {
  std::string_view call;
  SampleDtypes dtypes = SampleDtypes::all;
  int results = 1;  ///< More than one: `r` is a tuple of as many tensors.
};

enum class SampleLayout { contiguous, transposed, gapped };
inline constexpr SampleLayout kSampleLayouts[] = {SampleLayout::contiguous,
                                                  SampleLayout::transposed, SampleLayout::gapped};

/// The inputs by name, in the order of a graph's placeholders. They depend on the seed.
std::vector<std::pair<std::string, at::Tensor>> sample_inputs(at::ScalarType dtype,
                                                              SampleLayout layout);

std::vector<at::ScalarType> dtypes_of(SampleDtypes dtypes);

/// How far a result may be from eager's, relative and absolute.
double tolerance(at::ScalarType dtype);

std::span<const LoweringSample> pointwise_samples();
std::span<const LoweringSample> reduction_samples();
std::span<const LoweringSample> movement_samples();

}  // namespace assay::kernels
