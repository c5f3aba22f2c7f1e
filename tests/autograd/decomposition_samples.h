/// \file Sample calls for the rows of autograd/decompositions.h; each row must have one.
///
/// A sample is a line of text, which is called with several dtypes and memory layouts. To cover a
/// new row, add a line to the table of its theme. Its arguments are written as in Python; beyond
/// numbers, strings, lists, True, False and None there are
///
///   normal(4, 6)      random values, normally distributed; for integers between -9 and 9
///   corners(4, 6)     the same, with the values where operators have corners: 0, -0, 3, ...
///   edges(4, 6)       the same, with infinities and NaN too
///   unit(4, 6)        values between 0 and 1
///   positive(4, 6)    values above 0.1
///   dense(4, 6)       as normal, but without gaps in every layout
///   in_format(2, 3, 4, 4)   as normal, but contiguous in every layout but channels_last
///   row_major(4, 6)   as normal, but contiguous in every layout
///   single(4, 6)      values between 0 and 1, of float32 in every call
///   signs, nan, minus_infinity, flags, bytes: tensors of those, with sizes as above
///   labels(9, 4, 6)   integers below 9, of sizes 4 and 6
///   index(3, 0, -1)   these integers
///   number(0.5)       a tensor without dimensions
///   dtype, float64, int32, bool    dtypes; the first is that of the call
///   none, mean, sum   how losses are reduced
///   channels_last     a memory format
#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>
#include <vector>

namespace assay::autograd {

enum class Layout {
  contiguous,
  reversed,       ///< Dense, with the first dimension innermost.
  channels_last,  ///< If there are four or five dimensions; else contiguous.
  gapped,         ///< Every other element of something larger.
};

/// The dtypes that a sample is called with.
enum class Dtypes {
  floats,       ///< float, double, bfloat16
  full_floats,  ///< float and double, for what ATen's CPU kernels have no bfloat16
  bfloat16,     ///< bfloat16 alone, for calls that mix it with float
  numbers,      ///< floats and int64
  none,         ///< one call: nothing in the sample depends on a dtype
};

struct Sample {
  std::string_view op;
  /// The first arguments; the others have their defaults.
  std::string_view arguments;
  Dtypes dtypes = Dtypes::floats;
};

/// Makes the arguments of a sample anew.
std::vector<c10::IValue> make_arguments(const Sample& sample, at::ScalarType dtype, Layout layout);

using SampleTable = std::span<const Sample>;

SampleTable activation_samples();
SampleTable loss_samples();
SampleTable math_samples();
SampleTable normalisation_samples();
SampleTable reduction_samples();
SampleTable shape_samples();

}  // namespace assay::autograd
