/// \file What each scalar operation of the loop IR means, one number at a time. Internal to
/// kernels/interpret.cpp.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "kernels/ir.h"

namespace assay::kernels {

/// A number of any dtype: integers and bools in `integer`, the others in `floating`, each exactly.
struct Number {
  std::int64_t integer = 0;
  double floating = 0;
};

/// ATen's conversion, also from floating point that does not fit.
Number convert_number(Number value, c10::ScalarType from, c10::ScalarType to);

/// The bits of one dtype read as another of the same width.
Number reinterpret_number(Number value, c10::ScalarType from, c10::ScalarType to);

/// The number at `element` of memory with elements of `dtype`, and back.
Number read_number(const void* memory, c10::ScalarType dtype, std::int64_t element);
void write_number(void* memory, c10::ScalarType dtype, std::int64_t element, Number value);

/// An operation on operands of `dtype`. Comparisons and tests give a bool.
Number compute_unary(Op op, c10::ScalarType dtype, Number x);
Number compute_binary(Op op, c10::ScalarType dtype, Number x, Number y);
Number compute_fma(c10::ScalarType dtype, Number x, Number y, Number z);

}  // namespace assay::kernels
