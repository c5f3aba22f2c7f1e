/// \file The text of the functions that are written into generated code: exp, log and what is made
/// of them, erf, sin, cos. Coefficients are Chebyshev interpolations computed with 200 bits. Errors
/// are at most 2 units in the last place (tanh of f32: 2.5), and NaN, infinities, -0 and subnormal
/// numbers are right; tests/kernels/math_test.cpp checks it.
#pragma once

#include <string>
#include <string_view>

#include "kernels/emit/prelude.h"
#include "kernels/ir.h"

namespace assay::kernels {

/// Adds the function `name` to the prelude. False if there is no text for `op`.
bool define_polynomial(Prelude& prelude, Op op, std::string_view element, int lanes,
                       const std::string& name);

/// Adds a function that computes `op` for several vectors at once, in place, line by line for all
/// of them: a polynomial is a chain of instructions that wait for each other, and another chain
/// fills the gaps. Returns its name, or nothing if there is no text that can be written in this
/// way.
std::string define_side_by_side(Prelude& prelude, Op op, std::string_view element, int lanes,
                                int copies);

/// The name of a function a * b + c, rounded once if the CPU can.
std::string multiply_add(Prelude& prelude, std::string_view element, int lanes);

}  // namespace assay::kernels
