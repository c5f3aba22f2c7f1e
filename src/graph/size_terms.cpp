#include "graph/size_terms.h"

#include <algorithm>

namespace assay::graph {

using Operation = SizeExpr::Operation;

Wide checked_add(Wide left, Wide right) {
  Wide result = 0;
  if (__builtin_add_overflow(left, right, &result)) throw SizeTooLarge();
  return result;
}

Wide checked_multiply(Wide left, Wide right) {
  Wide result = 0;
  if (__builtin_mul_overflow(left, right, &result)) throw SizeTooLarge();
  return result;
}

Wide checked_power(Wide base, std::int64_t exponent) {
  Wide result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = checked_multiply(result, base);
    if (exponent > 1) base = checked_multiply(base, base);
  }
  return result;
}

std::int64_t checked_narrow(Wide value) {
  if (value < INT64_MIN || value > INT64_MAX) throw SizeTooLarge();
  return static_cast<std::int64_t>(value);
}

Wide floor_quotient(Wide left, Wide right) {
  if (right == -1) return checked_multiply(left, -1);
  const Wide quotient = left / right;
  const bool rounds_up = left % right != 0 && (left < 0) != (right < 0);
  return rounds_up ? quotient - 1 : quotient;
}

Wide floor_remainder(Wide left, Wide right) {
  if (right == -1) return 0;
  const Wide remainder = left % right;
  return remainder != 0 && (remainder < 0) != (right < 0) ? remainder + right : remainder;
}

Wide gcd(Wide left, Wide right) {
  left = left < 0 ? checked_multiply(left, -1) : left;
  right = right < 0 ? checked_multiply(right, -1) : right;
  while (right != 0) {
    const Wide rest = left % right;
    left = right;
    right = rest;
  }
  return left;
}

namespace {

std::int64_t degree(const SizeExpr& expression) {
  if (expression.is_constant()) return 0;
  std::int64_t sum = 0;
  switch (expression.operation()) {
    case Operation::multiply:
      for (const SizeExpr& factor : expression.operands()) sum += degree(factor);
      return sum;
    case Operation::power:
      return std::clamp<std::int64_t>(expression.operands()[1].constant().value_or(1), 1, 1 << 20);
    default:
      return 1;
  }
}

// What repeated factors are collected by: `s0` of `s0**2`.
const SizeExpr& base_of(const SizeExpr& factor) {
  const bool is_power = !factor.is_constant() && factor.operation() == Operation::power;
  return is_power ? factor.operands()[0] : factor;
}

// The divisions and powers in an expression that may be an error.
void collect_failing(const SizeExpr& expression, SizeSum& sum) {
  if (!expression.may_divide_by_zero()) return;
  const Operation operation = expression.operation();
  const bool divides = operation == Operation::floor_divide || operation == Operation::modulo;
  if ((divides && expression.operands()[1].constant().value_or(0) == 0) ||
      (operation == Operation::power && expression.operands()[1].constant().value_or(-1) < 0)) {
    sum.terms.try_emplace(expression, 0);
    return;
  }
  for (const SizeExpr& operand : expression.operands()) collect_failing(operand, sum);
}

}  // namespace

bool TermOrder::operator()(const SizeExpr& left, const SizeExpr& right) const {
  const auto left_degree = degree(left);
  const auto right_degree = degree(right);
  return left_degree != right_degree ? left_degree > right_degree : compare(left, right) < 0;
}

bool FactorOrder::operator()(const SizeExpr& left, const SizeExpr& right) const {
  const auto order = compare(base_of(left), base_of(right));
  return order != 0 ? order < 0 : compare(left, right) < 0;
}

void SizeSum::add(const SizeExpr& expression, Wide scale) {
  if (const auto value = expression.constant()) {
    constant = checked_add(constant, checked_multiply(scale, *value));
    return;
  }
  if (expression.operation() == Operation::add) {
    for (const SizeExpr& operand : expression.operands()) add(operand, scale);
    return;
  }
  if (expression.operation() != Operation::multiply) {
    Wide& coefficient = terms[expression];
    coefficient = checked_add(coefficient, scale);
    return;
  }
  std::vector<SizeExpr> factors;
  for (const SizeExpr& factor : expression.operands()) {
    if (const auto value = factor.constant()) {
      scale = checked_multiply(scale, *value);
    } else {
      factors.push_back(factor);
    }
  }
  if (factors.empty()) {
    constant = checked_add(constant, scale);
    return;
  }
  const SizeExpr term =
      factors.size() == 1 ? factors[0] : SizeTree::make(Operation::multiply, std::move(factors));
  if (term.operation() == Operation::add) {  // only where a constant was too large to distribute
    add(term, scale);
    return;
  }
  Wide& coefficient = terms[term];
  coefficient = checked_add(coefficient, scale);
}

// Zero times a division by zero is still an error: of a term without coefficient the divisions
// stay.
void SizeSum::drop_zeros() {
  SizeSum failing;
  for (const auto& [term, coefficient] : terms) {
    if (coefficient == 0) collect_failing(term, failing);
  }
  std::erase_if(terms, [](const auto& entry) { return entry.second == 0; });
  terms.merge(failing.terms);
}

SizeExpr SizeSum::build() {
  drop_zeros();
  std::vector<SizeExpr> operands;
  for (const auto& [term, wide_coefficient] : terms) {
    const std::int64_t coefficient = checked_narrow(wide_coefficient);
    if (coefficient == 1) {
      operands.push_back(term);
      continue;
    }
    std::vector<SizeExpr> factors = {coefficient};
    if (term.operation() == Operation::multiply) {
      factors.insert(factors.end(), term.operands().begin(), term.operands().end());
    } else {
      factors.push_back(term);
    }
    operands.push_back(SizeTree::make(Operation::multiply, std::move(factors)));
  }
  if (operands.empty()) return checked_narrow(constant);
  if (constant != 0) operands.emplace_back(checked_narrow(constant));
  return operands.size() == 1 ? operands[0] : SizeTree::make(Operation::add, std::move(operands));
}

Wide SizeSum::content() const {
  Wide divisor = constant < 0 ? checked_multiply(constant, -1) : constant;
  for (const auto& [term, coefficient] : terms) divisor = gcd(divisor, coefficient);
  return divisor;
}

void SizeProduct::multiply(const SizeExpr& expression, std::int64_t exponent) {
  if (const auto value = expression.constant()) {
    coefficient = checked_multiply(coefficient, checked_power(*value, exponent));
    return;
  }
  const auto add_factor = [&](const SizeExpr& factor) {
    std::int64_t& total = factors[factor];
    total = checked_narrow(Wide{total} + exponent);
  };
  if (expression.operation() == Operation::multiply) {
    for (const SizeExpr& operand : expression.operands()) multiply(operand, exponent);
    return;
  }
  if (expression.operation() == Operation::power) {
    const auto inner = expression.operands()[1].constant();
    if (inner && *inner > 0) {
      multiply(expression.operands()[0], checked_narrow(Wide{*inner} * exponent));
      return;
    }
  }
  if (expression.operation() != Operation::add) {
    add_factor(expression);
    return;
  }
  SizeSum sum(expression);
  Wide content = sum.content();
  if (sum.terms.empty() || content == 0) {
    add_factor(expression);
    return;
  }
  if (sum.terms.begin()->second < 0) content = checked_multiply(content, -1);
  coefficient = checked_multiply(coefficient, checked_power(content, exponent));
  sum.constant = sum.constant / content;
  for (auto& [term, scale] : sum.terms) scale = scale / content;
  add_factor(sum.build());
}

SizeExpr SizeProduct::build() const {
  if (coefficient == 0) {
    SizeSum zero;
    for (const auto& [factor, exponent] : factors) collect_failing(factor, zero);
    return zero.build();
  }
  std::vector<SizeExpr> operands;
  for (const auto& [factor, exponent] : factors) {
    operands.push_back(exponent == 1 ? factor
                                     : SizeTree::make(Operation::power, {factor, exponent}));
  }
  const std::int64_t narrow = checked_narrow(coefficient);
  if (operands.empty()) return narrow;
  if (operands.size() == 1 && operands[0].operation() == Operation::add) {
    SizeSum distributed;
    distributed.add(operands[0], coefficient);
    return distributed.build();
  }
  if (narrow != 1) operands.insert(operands.begin(), narrow);
  if (operands.size() == 1) return operands[0];
  return SizeTree::make(Operation::multiply, std::move(operands));
}

}  // namespace assay::graph
