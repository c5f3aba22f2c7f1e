/// \file Building blocks of generated code: conversions, and functions that move vectors between
/// registers and memory. Each writes what it needs into the prelude and returns an expression, or
/// the name of a function.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>

#include "kernels/emit/prelude.h"

namespace assay::kernels {

/// A vector whose lanes are all `scalar`; itself for one lane.
std::string splat(Prelude& prelude, std::string_view element, int lanes, const std::string& scalar);

/// The lanes' numbers: {0, 1, 2, ...}.
std::string iota(Prelude& prelude, std::string_view element, int lanes);

/// `value` converted from numbers of one type to another, as static_cast does. Not for bools.
std::string convert(Prelude& prelude, const std::string& value, std::string_view from,
                    std::string_view to, int lanes);

/// The bits of `value` as another type.
std::string reinterpret(Prelude& prelude, const std::string& value, std::string_view to, int lanes);

/// Bits of half or bfloat16 to f32 and back.
std::string widen_half(Prelude& prelude, const std::string& value, c10::ScalarType from, int lanes);
std::string narrow_to_half(Prelude& prelude, const std::string& value, c10::ScalarType to,
                           int lanes);

/// The name of one of the functions of the table in vectors.cpp for vectors of this type.
/// `index` is the type of the offsets, for those that have any.
std::string vector_function(Prelude& prelude, std::string_view function, std::string_view element,
                            int lanes);

/// A mask (a vector of signed integers, 0 or -1) of another width.
std::string convert_mask(Prelude& prelude, const std::string& mask, int from_width, int to_width,
                         int lanes);
/// Whether any lane of a mask is set.
std::string any_lane(Prelude& prelude, const std::string& mask, int width, int lanes);

}  // namespace assay::kernels
