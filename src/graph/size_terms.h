/// \file Sums and products of sizes taken apart: how canonical forms are computed. Internal to
/// graph/size_canonical.cpp and graph/size_range.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "graph/size_expr.h"

namespace assay::graph {

/// Wide enough that sums and products of a few 64-bit sizes cannot overflow.
__extension__ using Wide = __int128;

/// Thrown where a constant fits no 64 bits (or no 128, on the way): the expression is then kept as
/// written. Never leaves SizeExpr::binary.
struct SizeTooLarge {};

Wide checked_add(Wide left, Wide right);
Wide checked_multiply(Wide left, Wide right);
Wide checked_power(Wide base, std::int64_t exponent);
std::int64_t checked_narrow(Wide value);
/// Python's semantics: rounds towards minus infinity. `right` is not zero.
Wide floor_quotient(Wide left, Wide right);
Wide floor_remainder(Wide left, Wide right);

/// Makes nodes without simplifying them.
struct SizeTree {
  static SizeExpr make(SizeExpr::Operation operation, std::vector<SizeExpr> operands);
};

struct TermOrder {  // sums print with the highest degree first
  bool operator()(const SizeExpr& left, const SizeExpr& right) const;
};
struct FactorOrder {
  bool operator()(const SizeExpr& left, const SizeExpr& right) const;
};

/// `constant + sum of coefficient * term`; no term is a sum, a constant, or has a coefficient.
struct SizeSum {
  Wide constant = 0;
  std::map<SizeExpr, Wide, TermOrder> terms;

  SizeSum() = default;
  explicit SizeSum(const SizeExpr& expression) { add(expression, 1); }
  void add(const SizeExpr& expression, Wide scale);
  SizeExpr build();
  /// The greatest common divisor of the coefficients, and of the constant if there is one.
  Wide content() const;

 private:
  void drop_zeros();
};

/// `coefficient * product of factor ** exponent`; no factor is a product or a constant, and sums
/// among them have no common divisor and begin with a positive coefficient.
struct SizeProduct {
  Wide coefficient = 1;
  std::map<SizeExpr, std::int64_t, FactorOrder> factors;

  SizeProduct() = default;
  explicit SizeProduct(const SizeExpr& expression) { multiply(expression, 1); }
  void multiply(const SizeExpr& expression, std::int64_t exponent);
  SizeExpr build() const;
};

Wide gcd(Wide left, Wide right);

}  // namespace assay::graph
