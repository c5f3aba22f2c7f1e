/// \file The expression of one arithmetic instruction, for scalars and for vectors. The semantics
/// are ATen's: wrap-around of integers, NaN in maximum and minimum, the signs of division and
/// remainder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/emit/prelude.h"
#include "kernels/ir.h"

namespace assay::kernels {

/// `op` on numbers of type `element`. The result has that type too; that of a comparison is a bool
/// (one lane) or a mask of the same width.
std::string arithmetic(Prelude& prelude, Op op, std::string_view element, int lanes,
                       std::span<const std::string> operands);

/// Whether `op` on integers is a function of its own: divisions, powers, shifts.
bool is_integer_function(Op op);
/// Such a function of integers with the same second operand in all lanes.
std::string arithmetic_by_scalar(Prelude& prelude, Op op, std::string_view element, int lanes,
                                 const std::string& vector, const std::string& scalar);

/// `op` on bools (one lane) or on masks of one width: and, or, comparisons, `where`, ...
std::string logic(Op op, int lanes, std::span<const std::string> operands);

/// Whether the result is a bool whatever the operands are.
bool is_comparison(Op op);

/// A number as a literal of type `element`.
std::string literal(const c10::Scalar& value, c10::ScalarType dtype);
/// What a reduction starts with, as a literal; and how two partial results become one.
std::string reduction_start(Op op, std::string_view element);
Op reduction_step(Op op);

}  // namespace assay::kernels
