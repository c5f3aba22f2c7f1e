// Canonical forms: what SizeExpr::binary makes of its operands.
#include <algorithm>

#include "assay/error.h"
#include "graph/size_terms.h"

namespace assay::graph {

namespace {

using Operation = SizeExpr::Operation;

SizeExpr add(const SizeExpr& left, const SizeExpr& right, Wide scale) {
  SizeSum sum(left);
  sum.add(right, scale);
  return sum.build();
}

SizeExpr multiply(const SizeExpr& left, const SizeExpr& right) {
  SizeProduct product(left);
  product.multiply(right, 1);
  return product.build();
}

SizeExpr scaled(const SizeExpr& expression, Wide scale) {
  SizeSum sum;
  sum.add(expression, scale);
  return sum.build();
}

SizeExpr power(const SizeExpr& base, const SizeExpr& exponent) {
  const auto constant = exponent.constant();
  if (!constant || *constant < 0) return SizeTree::make(Operation::power, {base, exponent});
  if (*constant == 0) {
    if (base.may_divide_by_zero()) return SizeTree::make(Operation::power, {base, exponent});
    return 1;
  }
  SizeProduct product;
  product.multiply(base, *constant);
  return product.build();
}

// Divides both by what they have in common and makes the divisor begin with a positive coefficient.
// Gives the common divisor, negative if the signs were changed.
Wide take_common_divisor(SizeExpr& left, SizeExpr& right) {
  SizeSum numerator(left);
  SizeSum divisor(right);
  Wide common = gcd(numerator.content(), divisor.content());
  if (common == 0) return 1;
  if (!divisor.terms.empty() && divisor.terms.begin()->second < 0) common = -common;
  for (SizeSum* sum : {&numerator, &divisor}) {
    sum->constant /= common;
    for (auto& [term, coefficient] : sum->terms) coefficient /= common;
  }
  left = numerator.build();
  right = divisor.build();
  return common;
}

// `x//a`, with a positive constant `a`, as the only term of `sum`.
const SizeExpr* only_quotient(const SizeSum& sum) {
  if (sum.terms.size() != 1 || sum.terms.begin()->second != 1) return nullptr;
  const SizeExpr& term = sum.terms.begin()->first;
  if (term.operation() != Operation::floor_divide) return nullptr;
  const auto divisor = term.operands()[1].constant();
  return divisor && *divisor > 0 ? &term : nullptr;
}

SizeExpr floor_divide(SizeExpr left, SizeExpr right);

// `inside // divisor`, which has no exact multiples and a constant between 0 and the divisor.
SizeExpr divide_rest(SizeSum inside, Wide divisor) {
  Wide common = divisor;
  for (const auto& [term, coefficient] : inside.terms) common = gcd(common, coefficient);
  inside.constant = floor_quotient(inside.constant, common);
  for (auto& [term, coefficient] : inside.terms) coefficient /= common;
  divisor /= common;
  if (const SizeExpr* inner = only_quotient(inside)) {
    // (x//a + c)//d is (x + a*c)//(a*d).
    const Wide inner_divisor = *inner->operands()[1].constant();
    SizeSum numerator(inner->operands()[0]);
    numerator.constant =
        checked_add(numerator.constant, checked_multiply(inside.constant, inner_divisor));
    return floor_divide(numerator.build(),
                        checked_narrow(checked_multiply(inner_divisor, divisor)));
  }
  Wide sign = 1;
  if (inside.terms.begin()->second < 0) {  // -x rounded down is x rounded up
    sign = -1;
    inside.constant = divisor - 1 - inside.constant;
    for (auto& [term, coefficient] : inside.terms) coefficient = -coefficient;
  }
  const SizeExpr quotient =
      SizeTree::make(Operation::floor_divide, {inside.build(), checked_narrow(divisor)});
  return scaled(quotient, sign);
}

SizeExpr floor_divide(SizeExpr left, SizeExpr right) {
  if (!right.is_constant()) take_common_divisor(left, right);
  if (!right.is_constant() || right == SizeExpr(0)) {
    return SizeTree::make(Operation::floor_divide, {left, right});
  }
  Wide divisor = *right.constant();
  SizeSum sum;
  sum.add(left, divisor < 0 ? -1 : 1);
  divisor = divisor < 0 ? -divisor : divisor;
  SizeSum outside;
  SizeSum inside;
  for (const auto& [term, coefficient] : sum.terms) {
    if (coefficient % divisor == 0) {
      outside.terms[term] = coefficient / divisor;
    } else {
      inside.terms[term] = coefficient;
    }
  }
  outside.constant = floor_quotient(sum.constant, divisor);
  inside.constant = floor_remainder(sum.constant, divisor);
  if (!inside.terms.empty()) outside.add(divide_rest(std::move(inside), divisor), 1);
  return outside.build();
}

// Within a remainder by `divisor`, `y % m` is `y` where `m` is a multiple of the divisor.
SizeSum without_inner_remainders(const SizeSum& sum, Wide divisor) {
  SizeSum result;
  result.constant = sum.constant;
  for (const auto& [term, coefficient] : sum.terms) {
    const bool is_remainder = term.operation() == Operation::modulo;
    const auto inner = is_remainder ? term.operands()[1].constant() : std::nullopt;
    const bool can_go = inner && *inner != 0 && Wide{*inner} % divisor == 0;
    result.add(can_go ? term.operands()[0] : term, coefficient);
  }
  return result;
}

SizeExpr modulo(SizeExpr left, SizeExpr right) {
  if (right == SizeExpr(0)) return SizeTree::make(Operation::modulo, {left, right});
  if (!right.is_constant()) {
    const Wide common = take_common_divisor(left, right);
    return scaled(SizeTree::make(Operation::modulo, {left, right}), common);
  }
  Wide divisor = *right.constant();
  const Wide sign = divisor < 0 ? -1 : 1;
  divisor = divisor < 0 ? -divisor : divisor;
  SizeSum sum;
  sum.add(left, sign);
  sum = without_inner_remainders(sum, divisor);
  SizeSum outside;
  SizeSum inside;
  for (const auto& [term, coefficient] : sum.terms) {
    const Wide rest = floor_remainder(coefficient, divisor);
    (rest == 0 ? outside : inside).terms[term] = rest;  // zero times what may be an error stays
  }
  // (g*x + g*q + t) % (g*d) is g*((x + q) % d) + t.
  Wide common = divisor;
  for (const auto& [term, coefficient] : inside.terms) common = gcd(common, coefficient);
  const Wide constant = floor_remainder(sum.constant, divisor);
  outside.constant = checked_multiply(sign, inside.terms.empty() ? constant : constant % common);
  if (inside.terms.empty()) return outside.build();
  inside.constant = constant / common;
  for (auto& [term, coefficient] : inside.terms) coefficient /= common;
  const SizeExpr rest =
      SizeTree::make(Operation::modulo, {inside.build(), checked_narrow(divisor / common)});
  outside.add(rest, checked_multiply(sign, common));
  return outside.build();
}

// The constant by which `left` is larger than `right`, if it is one.
std::optional<std::int64_t> constant_difference(const SizeExpr& left, const SizeExpr& right) {
  return add(left, right, -1).constant();
}

SizeExpr extreme(Operation operation, const SizeExpr& left, const SizeExpr& right) {
  std::vector<SizeExpr> kept;
  const auto add_operand = [&](const SizeExpr& operand) {
    for (SizeExpr& known : kept) {
      const auto difference = constant_difference(operand, known);
      if (!difference) continue;
      if ((operation == Operation::maximum) == (*difference > 0)) known = operand;
      return;
    }
    kept.push_back(operand);
  };
  for (const SizeExpr* side : {&left, &right}) {
    if (!side->is_constant() && side->operation() == operation) {
      for (const SizeExpr& operand : side->operands()) add_operand(operand);
    } else {
      add_operand(*side);
    }
  }
  std::ranges::sort(kept, FactorOrder());
  return kept.size() == 1 ? kept[0] : SizeTree::make(operation, std::move(kept));
}

SizeExpr canonical(Operation operation, const SizeExpr& left, const SizeExpr& right) {
  switch (operation) {
    case Operation::add:
      return add(left, right, 1);
    case Operation::subtract:
      return add(left, right, -1);
    case Operation::multiply:
      return multiply(left, right);
    case Operation::floor_divide:
      return floor_divide(left, right);
    case Operation::modulo:
      return modulo(left, right);
    case Operation::power:
      return power(left, right);
    case Operation::minimum:
    case Operation::maximum:
      return extreme(operation, left, right);
    case Operation::constant:
    case Operation::symbol:
      break;
  }
  throw InternalError("not a binary operation on sizes");
}

}  // namespace

SizeExpr SizeExpr::binary(Operation operation, SizeExpr left, SizeExpr right) {
  try {
    return canonical(operation, left, right);
  } catch (const SizeTooLarge&) {
    // Kept as written; evaluating it says what is wrong.
    if (operation != Operation::subtract) {
      return SizeTree::make(operation, {std::move(left), std::move(right)});
    }
    return SizeTree::make(Operation::add,
                          {std::move(left), binary(Operation::multiply, -1, std::move(right))});
  }
}

SizeExpr SizeExpr::ceil_divide(const SizeExpr& left, const SizeExpr& right) {
  const auto negated = [](const SizeExpr& size) { return binary(Operation::multiply, -1, size); };
  return negated(binary(Operation::floor_divide, negated(left), right));
}

}  // namespace assay::graph
