/// \file What is known about sizes from the ranges of their symbols: bounds of an expression, and
/// simplifications that hold only within the ranges (`s0//s0` is 1 where `s0` is not 0).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "graph/size_expr.h"

namespace assay::graph {

/// All integers from `low` to `high`. The ends of the 64-bit integers mean that there is no bound.
struct SizeRange {
  std::int64_t low = INT64_MIN;
  std::int64_t high = INT64_MAX;

  bool contains(std::int64_t value) const { return low <= value && value <= high; }
  bool is_empty() const { return low > high; }
  bool operator==(const SizeRange&) const = default;
};

/// A size symbol of a graph.
struct SizeSymbol {
  std::optional<std::int64_t> hint;  ///< The value it had when the graph was made.
  SizeRange range;

  bool operator==(const SizeSymbol&) const = default;
};

/// By name. A symbol that is not in the table may be any integer.
using SizeSymbols = std::map<std::string, SizeSymbol, std::less<>>;

/// A range that contains every value the expression has while its symbols are in their ranges.
SizeRange bounds(const SizeExpr& size, const SizeSymbols& symbols);

/// An expression of the same value wherever the symbols are in their ranges.
SizeExpr simplify(const SizeExpr& size, const SizeSymbols& symbols);

}  // namespace assay::graph
