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
    variable.lower =
        std::max(variable.lower, factor > 0 ? ceil_divide(low, factor) : ceil_divide(high, factor));
    variable.upper = std::min(variable.upper,
                              factor > 0 ? floor_divide(high, factor) : floor_divide(low, factor));
    if (variable.lower > variable.upper) return false;
  }
  const IndexRange whole = plain_range(condition.index, variables);
  return whole.lower < condition.upper && whole.upper >= condition.lower;
}

// By how much `part` fits into `index`: the factor of all its variables, 0 if there is none.
std::int64_t multiple_of(const Index& index, const Index& part, std::size_t rank) {
  std::int64_t multiple = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t factor = part.coefficient(i);
    if (factor == 0) continue;
    const std::int64_t found = index.coefficient(i) / factor;
    if (found == 0 || found * factor != index.coefficient(i)) return 0;
    if (multiple != 0 && found != multiple) return 0;
    multiple = found;
  }
  return multiple;
}

// Splits the index into multiples of the conditions' indices, which lie between their bounds, and
// the rest.
IndexRange range_by_parts(Index rest, const std::vector<Condition>& conditions,
                          const Ranges& variables) {
  IndexRange range;
  for (const Condition& condition : conditions) {
    const std::int64_t multiple = multiple_of(rest, condition.index, variables.size());
    if (multiple == 0) continue;
    const IndexRange whole = plain_range(condition.index, variables);
    const std::int64_t low = std::max(condition.lower, whole.lower);
    const std::int64_t high = std::min(condition.upper - 1, whole.upper);
    range.lower += multiple * (multiple > 0 ? low : high);
    range.upper += multiple * (multiple > 0 ? high : low);
    rest.offset -= multiple * condition.index.offset;
    for (std::size_t i = 0; i < condition.index.coefficients.size(); ++i) {
      if (condition.index.coefficients[i] != 0) rest.coefficients[i] = 0;
    }
  }
  const IndexRange remaining = plain_range(rest, variables);
  return {range.lower + remaining.lower, range.upper + remaining.upper};
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
  const IndexRange plain = plain_range(index, variables);
  const IndexRange parts = range_by_parts(index, conditions, variables);
  return IndexRange{std::max(plain.lower, parts.lower), std::min(plain.upper, parts.upper)};
}

}  // namespace assay::kernels
