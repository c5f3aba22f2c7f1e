/// \file What schemas and tags do not say about operators, or say wrongly: one table, with a reason
/// for each group of rows. Read by aten/operator_record.cpp alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay::aten {

/// What a row adds to the record of its operators.
enum class Fact : std::uint8_t {
  writes_statistics,  ///< Writes to the arguments `running_mean` and `running_var`.
  writes_first,       ///< Writes to its first argument.
  has_effect,         ///< Does more than compute, but writes to no tensor.
  random,
  draws_floats,
  view,        ///< A view that is not declared.
  maybe_view,  ///< Declared a view, but a copy where that is impossible.
  keeps_elements,
  pointwise,
  gather,
  join,
  reduction,
  expensive,
  uninitialized,
  float_factory,
  reads_values,
  sizes_from_mask,
  sizes_if_unsized,
  opens_files,
};

struct OperatorException {
  Fact fact;
  std::string_view reason;
  /// Either all overloads (`aten::empty`) or one of them (`aten::view.default`). Those of `prims`
  /// exist only where Python has defined them; their rows hold for graphs that name them.
  std::vector<std::string_view> operators;
};

std::span<const OperatorException> operator_exceptions();

}  // namespace assay::aten
