/// \file Functions of floating-point numbers in generated code: polynomials written into the text
/// where a function is frequent, calls of imported functions (imports.h) where it is rare.
#pragma once

#include <string>
#include <string_view>

#include "kernels/emit/prelude.h"
#include "kernels/ir.h"

namespace assay::kernels {

/// The name of a function that computes `op` on `lanes` elements (f32 or f64). Scalars and vectors
/// give the same results where both are written into the text.
std::string float_function(Prelude& prelude, Op op, std::string_view element, int lanes);

/// The same by a call of an imported function, whether or not there is text for it.
std::string imported_function(Prelude& prelude, Op op, std::string_view element, int lanes);

}  // namespace assay::kernels
