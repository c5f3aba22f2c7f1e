// The text of sizes, with only the parentheses that are needed (and those that people need).
#include <algorithm>

#include "graph/size_expr.h"

namespace assay::graph {

namespace {

using Operation = SizeExpr::Operation;
using Style = SizeExpr::Style;

std::string text(const SizeExpr& size, Style style);

bool is_atom(const SizeExpr& size) {
  if (const auto value = size.constant()) return *value >= 0;
  return size.operation() == Operation::symbol || size.operation() == Operation::minimum ||
         size.operation() == Operation::maximum;
}

std::string operand_text(const SizeExpr& size, Style style) {
  return is_atom(size) ? text(size, style) : "(" + text(size, style) + ")";
}

std::string factor_text(const SizeExpr& size, Style style) {
  return size.operation() == Operation::power ? text(size, style) : operand_text(size, style);
}

// A product whose first operand is its only constant.
bool has_coefficient(const SizeExpr& size) {
  const auto& operands = size.operands();
  return size.operation() == Operation::multiply && operands[0].is_constant() &&
         !operands[1].is_constant();
}

// The smallest integer has no negative, and is written as it is.
bool is_negative_term(const SizeExpr& size) {
  const auto value = has_coefficient(size) ? size.operands()[0].constant() : size.constant();
  return value && *value < 0 && *value != INT64_MIN;
}

// With `negated`, of minus the product.
std::string product_text(const SizeExpr& size, Style style, bool negated) {
  const auto& operands = size.operands();
  std::string result;
  std::size_t first = 0;
  if (has_coefficient(size)) {
    const std::int64_t value = *operands[0].constant();
    const std::int64_t coefficient = negated ? -value : value;
    if (coefficient == -1) {
      result = "-";
    } else if (coefficient != 1) {
      result = std::to_string(coefficient) + "*";
    }
    first = 1;
  }
  for (std::size_t i = first; i < operands.size(); ++i) {
    if (i > first) result += "*";
    result += factor_text(operands[i], style);
  }
  return result;
}

std::string sum_text(const SizeExpr& size, Style style) {
  std::string result;
  for (const SizeExpr& term : size.operands()) {
    const bool is_negative = is_negative_term(term) && !result.empty();
    if (!result.empty()) result += is_negative ? " - " : " + ";
    if (is_negative) {
      result +=
          term.is_constant() ? std::to_string(-*term.constant()) : product_text(term, style, true);
    } else if (term.operation() == Operation::add || term.operation() == Operation::modulo) {
      result += "(" + text(term, style) + ")";
    } else {
      result += text(term, style);
    }
  }
  return result;
}

std::string call_text(const char* function, const SizeExpr& size, Style style) {
  std::string result = std::string(function) + "(";
  for (std::size_t i = 0; i < size.operands().size(); ++i) {
    result += (i > 0 ? ", " : "") + text(size.operands()[i], style);
  }
  return result + ")";
}

std::string binary_text(const char* symbol, const SizeExpr& size, Style style) {
  return operand_text(size.operands()[0], style) + symbol + operand_text(size.operands()[1], style);
}

std::string text(const SizeExpr& size, Style style) {
  const bool is_sympy = style == Style::sympy;
  switch (size.operation()) {
    case Operation::constant:
      return std::to_string(*size.constant());
    case Operation::symbol:
      return size.name();
    case Operation::add:
    case Operation::subtract:
      return sum_text(size, style);
    case Operation::multiply:
      return product_text(size, style, false);
    case Operation::floor_divide:
      return binary_text("//", size, style);
    case Operation::modulo:
      return binary_text(" % ", size, style);
    case Operation::power:
      return binary_text("**", size, style);
    case Operation::minimum:
      return call_text(is_sympy ? "Min" : "min", size, style);
    case Operation::maximum:
      return call_text(is_sympy ? "Max" : "max", size, style);
  }
  return {};
}

}  // namespace

std::string SizeExpr::str(Style style) const { return text(*this, style); }

}  // namespace assay::graph
