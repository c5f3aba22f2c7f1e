#include "kernels/index_range.h"

#include <algorithm>

namespace assay::kernels {

namespace {

using Ranges = std::vector<IndexRange>;

IndexRange plain_range(const Index& index, const Ranges& variables) {
  IndexRange range{index.offset, index.offset};
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const std::int64_t factor = index.coefficient(i);
    range.lower += factor * (factor < 0 ? variables[i].upper : variables[i].lower);
    range.upper += factor * (factor < 0 ? variables[i].lower : variables[i].upper);
  }
  return range;
}

std::int64_t floor_divide(std::int64_t x, std::int64_t y) {
  const std::int64_t quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}
std::int64_t ceil_divide(std::int64_t x, std::int64_t y) { return -floor_divide(-x, y); }

// Narrows each variable to what the condition allows, given the ranges of the others. False if
// nothing is left.
bool narrow(const Condition& condition, Ranges& variables) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const std::int64_t factor = condition.index.coefficient(i);
    if (factor == 0) continue;
    Index others = condition.index;
    others.coefficients[i] = 0;
    const IndexRange rest = plain_range(others, variables);
    // lower - rest.upper <= factor * variable <= upper - 1 - rest.lower
    const std::int64_t low = condition.lower - rest.upper;
    const std::int64_t high = condition.upper - 1 - rest.lower;
    IndexRange& variable = variables[i];
    variable.lower = std::max(variable.lower, factor > 0 ? ceil_divide(low, factor)
                                                         : ceil_divide(high, factor));
    variable.upper = std::min(variable.upper, factor > 0 ? floor_divide(high, factor)
                                                         : floor_divide(low, factor));
    if (variable.lower > variable.upper) return false;
  }
  const IndexRange whole = plain_range(condition.index, variables);
  return whole.lower < condition.upper && whole.upper >= condition.lower;
}

// If the index contains a multiple of the condition's, that part is bounded by the condition.
void bound_by_condition(const Index& index, const Condition& condition, const Ranges& variables,
                        IndexRange& range) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const std::int64_t factor = condition.index.coefficient(i);
    if (factor == 0 || index.coefficient(i) % factor != 0) continue;
    const std::int64_t multiple = index.coefficient(i) / factor;
    if (multiple == 0) continue;
    Index rest{index.offset - multiple * condition.index.offset, {}};
    for (std::size_t k = 0; k < variables.size(); ++k) {
      rest.coefficients.push_back(index.coefficient(k) - multiple * condition.index.coefficient(k));
    }
    const IndexRange remaining = plain_range(rest, variables);
    const IndexRange whole = plain_range(condition.index, variables);
    const std::int64_t low = std::max(condition.lower, whole.lower);
    const std::int64_t high = std::min(condition.upper - 1, whole.upper);
    range.lower = std::max(range.lower, remaining.lower + multiple * (multiple > 0 ? low : high));
    range.upper = std::min(range.upper, remaining.upper + multiple * (multiple > 0 ? high : low));
  }
}

}  // namespace

std::optional<IndexRange> index_range(const Index& index, const Sizes& loops,
                                      const std::vector<Condition>& conditions) {
  Ranges variables;
  for (const std::int64_t size : loops) variables.push_back({0, size - 1});
  // Twice: what one condition says about a loop helps the others.
  for (int round = 0; round < 2; ++round) {
    for (const Condition& condition : conditions) {
      if (!narrow(condition, variables)) return std::nullopt;
    }
  }
  IndexRange range = plain_range(index, variables);
  for (const Condition& condition : conditions) {
    bound_by_condition(index, condition, variables, range);
  }
  return range;
}

}  // namespace assay::kernels
