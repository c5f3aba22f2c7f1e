#include "graph/size_expr.h"

#include <algorithm>
#include <utility>

#include "assay/error.h"
#include "graph/size_terms.h"

namespace assay::graph {

struct SizeExpr::Tree {
  Operation operation;
  std::string name;  // of a symbol
  std::vector<SizeExpr> operands;
  bool may_divide_by_zero;
};

namespace {

using Operation = SizeExpr::Operation;

// The wide type keeps intermediate values exact: only the result must fit 64 bits.
struct Evaluator {
  const SymbolValues& symbols;

  static Wide constant(std::int64_t value) { return value; }

  Wide symbol(const std::string& name) const {
    const auto found = symbols.find(name);
    if (found == symbols.end()) {
      throw UserError("the size symbol '" + name + "' has no value",
                      "the file should bind it, as in '" + name + " = 4'");
    }
    return found->second;
  }

  static Wide operation(Operation operation, Wide left, Wide right) {
    switch (operation) {
      case Operation::add:
        return checked_add(left, right);
      case Operation::multiply:
        return checked_multiply(left, right);
      case Operation::floor_divide:
        if (right == 0) throw SizeTooLarge();
        return floor_quotient(left, right);
      case Operation::modulo:
        if (right == 0) throw SizeTooLarge();
        return floor_remainder(left, right);
      case Operation::power:
        if (right < 0) throw SizeTooLarge();
        return checked_power(left, checked_narrow(right));
      case Operation::minimum:
        return std::min(left, right);
      case Operation::maximum:
        return std::max(left, right);
      case Operation::subtract:
      case Operation::constant:
      case Operation::symbol:
        break;
    }
    throw InternalError("not an operation on sizes");
  }
};

struct Substitution {
  const std::map<std::string, SizeExpr, std::less<>>& replacements;

  static SizeExpr constant(std::int64_t value) { return value; }
  SizeExpr symbol(const std::string& name) const {
    const auto found = replacements.find(name);
    return found == replacements.end() ? SizeExpr::symbol(name) : found->second;
  }
  static SizeExpr operation(Operation operation, const SizeExpr& left, const SizeExpr& right) {
    return SizeExpr::binary(operation, left, right);
  }
};

bool divides_by_zero(Operation operation, const std::vector<SizeExpr>& operands) {
  if (std::ranges::any_of(operands,
                          [](const SizeExpr& operand) { return operand.may_divide_by_zero(); })) {
    return true;
  }
  if (operation == Operation::power) return operands[1].constant().value_or(-1) < 0;
  if (operation != Operation::floor_divide && operation != Operation::modulo) return false;
  return operands[1].constant().value_or(0) == 0;
}

}  // namespace

SizeExpr SizeTree::make(Operation operation, std::vector<SizeExpr> operands) {
  const bool fails = divides_by_zero(operation, operands);
  SizeExpr result;
  result.tree_ = std::make_shared<const SizeExpr::Tree>(
      SizeExpr::Tree{operation, {}, std::move(operands), fails});
  return result;
}

SizeExpr SizeExpr::symbol(std::string name) {
  SizeExpr result;
  result.tree_ = std::make_shared<const Tree>(Tree{Operation::symbol, std::move(name), {}, false});
  return result;
}

std::optional<std::int64_t> SizeExpr::constant() const {
  if (!is_constant()) return std::nullopt;
  return value_;
}

SizeExpr::Operation SizeExpr::operation() const {
  return is_constant() ? Operation::constant : tree_->operation;
}

const std::string& SizeExpr::name() const {
  static const std::string none;
  return is_constant() ? none : tree_->name;
}

const std::vector<SizeExpr>& SizeExpr::operands() const {
  static const std::vector<SizeExpr> none;
  return is_constant() ? none : tree_->operands;
}

void SizeExpr::for_each_symbol(const std::function<void(const std::string&)>& visit) const {
  if (operation() == Operation::symbol) visit(name());
  for (const SizeExpr& operand : operands()) operand.for_each_symbol(visit);
}

bool SizeExpr::may_divide_by_zero() const { return !is_constant() && tree_->may_divide_by_zero; }

std::int64_t SizeExpr::evaluate(const SymbolValues& symbols) const {
  if (is_constant()) return value_;
  try {
    return checked_narrow(fold(Evaluator{symbols}));
  } catch (const SizeTooLarge&) {
    throw UserError("the size '" + str() + "' overflows or divides by zero");
  }
}

SizeExpr SizeExpr::substitute(
    const std::map<std::string, SizeExpr, std::less<>>& replacements) const {
  return fold(Substitution{replacements});
}

bool operator==(const SizeExpr& left, const SizeExpr& right) {
  return left.tree_ == right.tree_ ? left.value_ == right.value_ : compare(left, right) == 0;
}

std::strong_ordering compare(const SizeExpr& left, const SizeExpr& right) {
  if (left.tree_ == right.tree_) return left.value_ <=> right.value_;
  if (left.operation() != right.operation()) return left.operation() <=> right.operation();
  if (left.name() != right.name()) return left.name() <=> right.name();
  const auto& left_operands = left.operands();
  const auto& right_operands = right.operands();
  for (std::size_t i = 0; i < std::min(left_operands.size(), right_operands.size()); ++i) {
    const auto order = compare(left_operands[i], right_operands[i]);
    if (order != 0) return order;
  }
  return left_operands.size() <=> right_operands.size();
}

}  // namespace assay::graph
