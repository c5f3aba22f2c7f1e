#include "graph/size_range.h"

#include <algorithm>
#include <array>

#include "graph/size_terms.h"

namespace assay::graph {

namespace {

using Operation = SizeExpr::Operation;

// One end of a range: an integer, or without bound in the direction of `infinity`.
struct End {
  Wide value = 0;
  int infinity = 0;
};

constexpr End kMinusInfinity = {0, -1};
constexpr End kInfinity = {0, 1};

bool operator<(const End& left, const End& right) {
  if (left.infinity != right.infinity) return left.infinity < right.infinity;
  return left.infinity == 0 && left.value < right.value;
}

int sign(const End& end) {
  if (end.infinity != 0) return end.infinity;
  return end.value > 0 ? 1 : (end.value < 0 ? -1 : 0);
}

End infinity(int direction) { return direction < 0 ? kMinusInfinity : kInfinity; }

struct Interval {
  End low = kMinusInfinity;
  End high = kInfinity;

  bool may_be(std::int64_t value) const {
    const End end{value, 0};
    return !(end < low) && !(high < end);
  }
};

Interval hull(const Interval& left, const Interval& right) {
  return {std::min(left.low, right.low), std::max(left.high, right.high)};
}

// `direction`: of the infinity that an end becomes when it gets too large to be kept.
End add(const End& left, const End& right, int direction) {
  if (left.infinity != 0) return left;
  if (right.infinity != 0) return right;
  Wide result = 0;
  if (__builtin_add_overflow(left.value, right.value, &result)) return infinity(direction);
  return {result, 0};
}

End multiply(const End& left, const End& right) {
  const int direction = sign(left) * sign(right);
  if (direction == 0) return {};
  if (left.infinity != 0 || right.infinity != 0) return infinity(direction);
  Wide result = 0;
  if (__builtin_mul_overflow(left.value, right.value, &result)) return infinity(direction);
  return {result, 0};
}

// The limit of the quotient, rounded down. `right` is not zero.
End divide(const End& left, const End& right) {
  const int direction = sign(left) * sign(right);
  if (right.infinity != 0) return direction < 0 ? End{-1, 0} : End{};
  if (left.infinity != 0) return infinity(direction);
  if (right.value == -1) return multiply(left, right);
  return {floor_quotient(left.value, right.value), 0};
}

Interval corners(const Interval& left, const Interval& right,
                 End (*combine)(const End&, const End&)) {
  const std::array<End, 4> ends = {combine(left.low, right.low), combine(left.low, right.high),
                                   combine(left.high, right.low), combine(left.high, right.high)};
  return {*std::min_element(ends.begin(), ends.end()), *std::max_element(ends.begin(), ends.end())};
}

// The parts of a divisor below and above zero; zero itself gives no value.
template <typename Part>
Interval over_divisors(const Interval& divisor, const Part& part) {
  const Interval negative = {divisor.low, std::min(divisor.high, End{-1, 0})};
  const Interval positive = {std::max(divisor.low, End{1, 0}), divisor.high};
  const bool has_negative = !(negative.high < negative.low);
  const bool has_positive = !(positive.high < positive.low);
  if (has_negative && has_positive) return hull(part(negative), part(positive));
  if (has_negative) return part(negative);
  if (has_positive) return part(positive);
  return {};
}

Interval floor_divide(const Interval& left, const Interval& right) {
  return over_divisors(right,
                       [&](const Interval& divisor) { return corners(left, divisor, &divide); });
}

Interval modulo(const Interval& left, const Interval& right) {
  return over_divisors(right, [&](const Interval& divisor) -> Interval {
    if (sign(divisor.high) < 0) {
      const End low = add(divisor.low, {1, 0}, -1);
      const bool is_small = sign(left.high) <= 0 && divisor.high < left.low;
      if (is_small) return left;
      return {sign(left.high) <= 0 ? std::max(low, left.low) : low, {}};
    }
    const End high = add(divisor.high, {-1, 0}, 1);
    const bool is_small = sign(left.low) >= 0 && left.high < divisor.low;
    if (is_small) return left;
    return {{}, sign(left.low) >= 0 ? std::min(high, left.high) : high};
  });
}

End power(const End& base, std::int64_t exponent) {
  if (base.infinity != 0) return base.infinity < 0 && exponent % 2 == 0 ? kInfinity : base;
  try {
    return {checked_power(base.value, exponent), 0};
  } catch (const SizeTooLarge&) {
    return infinity(base.value < 0 && exponent % 2 != 0 ? -1 : 1);
  }
}

Interval power(const Interval& base, const Interval& exponent) {
  const bool is_constant = exponent.low.infinity == 0 && exponent.high.infinity == 0 &&
                           exponent.low.value == exponent.high.value;
  const bool fits =
      exponent.high.infinity == 0 && sign(exponent.high) > 0 && exponent.high.value <= INT64_MAX;
  const auto highest = fits ? static_cast<std::int64_t>(exponent.high.value) : 0;
  if (is_constant && fits) {
    const auto [low, high] = std::minmax({power(base.low, highest), power(base.high, highest)});
    const bool spans_zero = sign(base.low) <= 0 && sign(base.high) >= 0;
    return {spans_zero && highest % 2 == 0 ? End{} : low, high};
  }
  if (sign(base.low) < 0) return {};
  Interval result = {{sign(base.low) > 0 ? 1 : 0, 0}, kInfinity};
  if (fits) result.high = std::max(power(base.high, highest), End{1, 0});
  return result;
}

struct Bounds {
  const SizeSymbols& symbols;

  static Interval constant(std::int64_t value) { return {{value, 0}, {value, 0}}; }

  Interval symbol(const std::string& name) const {
    const auto found = symbols.find(name);
    if (found == symbols.end()) return {};
    const auto& [low, high] = found->second.range;
    return {low == INT64_MIN ? kMinusInfinity : End{low, 0},
            high == INT64_MAX ? kInfinity : End{high, 0}};
  }

  static Interval operation(Operation operation, const Interval& left, const Interval& right) {
    switch (operation) {
      case Operation::add:
        return {add(left.low, right.low, -1), add(left.high, right.high, 1)};
      case Operation::multiply:
        return corners(left, right, &multiply);
      case Operation::floor_divide:
        return floor_divide(left, right);
      case Operation::modulo:
        return modulo(left, right);
      case Operation::power:
        return power(left, right);
      case Operation::minimum:
        return {std::min(left.low, right.low), std::min(left.high, right.high)};
      case Operation::maximum:
        return {std::max(left.low, right.low), std::max(left.high, right.high)};
      default:
        return {};
    }
  }
};

// Values are 64-bit integers: an end beyond them is theirs.
std::int64_t clamp(const End& end) {
  if (end.infinity != 0) return end.infinity < 0 ? INT64_MIN : INT64_MAX;
  return static_cast<std::int64_t>(std::clamp<Wide>(end.value, INT64_MIN, INT64_MAX));
}

// ---- simplification ----

class Simplifier {
 public:
  explicit Simplifier(const SizeSymbols& symbols) : symbols_(symbols) {}

  SizeExpr simplify(const SizeExpr& size) const {
    if (size.is_constant()) return size;
    const auto point = [&](const SizeExpr& expression) -> std::optional<SizeExpr> {
      const SizeRange range = bounds(expression, symbols_);
      const bool is_bounded = range.low != INT64_MIN && range.high != INT64_MAX;
      if (range.low != range.high || !is_bounded || may_fail(expression)) return std::nullopt;
      return range.low;
    };
    if (const auto value = point(size)) return *value;
    if (size.operands().empty()) return size;
    const SizeExpr result =
        size.reduce([this](const SizeExpr& operand) { return simplify(operand); },
                    [this](Operation operation, const SizeExpr& left, const SizeExpr& right) {
                      return combine(operation, left, right);
                    });
    const auto value = point(result);
    return value ? *value : result;
  }

 private:
  // As `SizeExpr::may_divide_by_zero`, within the ranges.
  bool may_fail(const SizeExpr& size) const {
    if (!size.may_divide_by_zero()) return false;
    if (std::ranges::any_of(size.operands(),
                            [this](const SizeExpr& operand) { return may_fail(operand); })) {
      return true;
    }
    const Operation operation = size.operation();
    if (operation == Operation::power) return bounds(size.operands()[1], symbols_).low < 0;
    if (operation != Operation::floor_divide && operation != Operation::modulo) return false;
    return bounds(size.operands()[1], symbols_).contains(0);
  }

  SizeExpr combine(Operation operation, const SizeExpr& left, const SizeExpr& right) const {
    switch (operation) {
      case Operation::minimum:
      case Operation::maximum:
        return extreme(operation, left, right);
      case Operation::floor_divide:
      case Operation::modulo:
        return divide(operation, left, right);
      default:
        return SizeExpr::binary(operation, left, right);
    }
  }

  SizeExpr extreme(Operation operation, const SizeExpr& left, const SizeExpr& right) const {
    // The difference may be bounded where the operands are not: Max(s0, s0 + s1).
    const SizeRange range = bounds(SizeExpr::binary(Operation::subtract, left, right), symbols_);
    const bool is_maximum = operation == Operation::maximum;
    if (range.low >= 0 && !may_fail(is_maximum ? right : left)) return is_maximum ? left : right;
    if (range.high <= 0 && !may_fail(is_maximum ? left : right)) return is_maximum ? right : left;
    return SizeExpr::binary(operation, left, right);
  }

  SizeExpr divide(Operation operation, const SizeExpr& left, const SizeExpr& right) const {
    const SizeRange divisor = bounds(right, symbols_);
    const SizeRange range = bounds(left, symbols_);
    if (divisor.contains(0) || may_fail(right)) return SizeExpr::binary(operation, left, right);
    if (operation == Operation::modulo && range.low >= 0 && range.high < divisor.low) return left;
    if (right.is_constant()) return SizeExpr::binary(operation, left, right);
    // left = right*quotient + rest
    SizeExpr quotient = 0;
    SizeExpr rest = 0;
    const bool is_sum = left.operation() == Operation::add;
    if (const auto exact = exact_quotient(left, right)) {
      quotient = *exact;
    } else {
      for (const SizeExpr& term : is_sum ? left.operands() : std::vector<SizeExpr>{left}) {
        const auto part = exact_quotient(term, right);
        SizeExpr& sum = part ? quotient : rest;
        sum = SizeExpr::binary(Operation::add, sum, part ? *part : term);
      }
    }
    if (operation == Operation::modulo) {
      return rest == SizeExpr(0) ? rest : SizeExpr::binary(Operation::modulo, rest, right);
    }
    if (rest == SizeExpr(0)) return quotient;
    return SizeExpr::binary(Operation::add, quotient,
                            SizeExpr::binary(Operation::floor_divide, rest, right));
  }

  // The quotient if its product with `right` is `left` whatever the symbols are.
  std::optional<SizeExpr> exact_quotient(const SizeExpr& left, const SizeExpr& right) const {
    try {
      SizeProduct quotient(left);
      const SizeProduct divisor(right);
      if (quotient.coefficient % divisor.coefficient != 0) return std::nullopt;
      quotient.coefficient /= divisor.coefficient;
      for (const auto& [factor, exponent] : divisor.factors) {
        const auto found = quotient.factors.find(factor);
        if (found == quotient.factors.end() || found->second < exponent) return std::nullopt;
        found->second -= exponent;
        if (found->second == 0) quotient.factors.erase(found);
      }
      return quotient.build();
    } catch (const SizeTooLarge&) {
      return std::nullopt;  // stays as it is
    }
  }

  const SizeSymbols& symbols_;
};

}  // namespace

SizeRange bounds(const SizeExpr& size, const SizeSymbols& symbols) {
  const Interval found = size.fold(Bounds{symbols});
  return {clamp(found.low), clamp(found.high)};
}

SizeExpr simplify(const SizeExpr& size, const SizeSymbols& symbols) {
  return Simplifier(symbols).simplify(size);
}

}  // namespace assay::graph
