#include "graph/size_expr.h"

#include <algorithm>
#include <utility>

#include "assay/error.h"

namespace assay::graph {

struct SizeExpr::Tree {
  Operation operation;
  std::string name;  // of a symbol
  SizeExpr left;
  SizeExpr right;
};

namespace {

using Operation = SizeExpr::Operation;

// Python's semantics: division and modulo round towards minus infinity.
std::optional<std::int64_t> apply(Operation operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (operation) {
    case Operation::add:
      if (__builtin_add_overflow(left, right, &result)) return std::nullopt;
      return result;
    case Operation::subtract:
      if (__builtin_sub_overflow(left, right, &result)) return std::nullopt;
      return result;
    case Operation::multiply:
      if (__builtin_mul_overflow(left, right, &result)) return std::nullopt;
      return result;
    case Operation::floor_divide:
    case Operation::modulo: {
      if (right == 0 || (left == INT64_MIN && right == -1)) return std::nullopt;
      std::int64_t quotient = left / right;
      std::int64_t remainder = left % right;
      if (remainder != 0 && (remainder < 0) != (right < 0)) {
        --quotient;
        remainder += right;
      }
      return operation == Operation::floor_divide ? quotient : remainder;
    }
    case Operation::power: {
      if (right < 0) return std::nullopt;
      result = 1;
      for (std::int64_t base = left; right > 0; right >>= 1) {
        if ((right & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return std::nullopt;
        if (right > 1 && __builtin_mul_overflow(base, base, &base)) return std::nullopt;
      }
      return result;
    }
    case Operation::minimum:
      return std::min(left, right);
    case Operation::maximum:
      return std::max(left, right);
    case Operation::constant:
    case Operation::symbol:
      break;
  }
  throw InternalError("not a binary operation on sizes");
}

struct Spelling {
  const char* text;
  int precedence;
};

Spelling spelling(Operation operation) {
  switch (operation) {
    case Operation::add:
      return {" + ", 1};
    case Operation::subtract:
      return {" - ", 1};
    case Operation::multiply:
      return {"*", 2};
    case Operation::floor_divide:
      return {"//", 2};
    case Operation::modulo:
      return {" % ", 2};
    case Operation::power:
      return {"**", 3};
    default:
      return {"", 0};
  }
}

}  // namespace

SizeExpr SizeExpr::symbol(std::string name) {
  SizeExpr result;
  result.tree_ = std::make_shared<const Tree>(Tree{Operation::symbol, std::move(name), {}, {}});
  return result;
}

SizeExpr SizeExpr::binary(Operation operation, SizeExpr left, SizeExpr right) {
  if (left.is_constant() && right.is_constant()) {
    if (auto folded = apply(operation, left.value_, right.value_)) return *folded;
  }
  SizeExpr result;
  result.tree_ =
      std::make_shared<const Tree>(Tree{operation, {}, std::move(left), std::move(right)});
  return result;
}

std::optional<std::int64_t> SizeExpr::constant() const {
  if (!is_constant()) return std::nullopt;
  return value_;
}

std::int64_t SizeExpr::evaluate(const SymbolValues& symbols) const {
  if (is_constant()) return value_;
  if (tree_->operation == Operation::symbol) {
    auto found = symbols.find(tree_->name);
    if (found == symbols.end()) {
      throw UserError("the size symbol '" + tree_->name + "' has no value",
                      "the file should bind it, as in '" + tree_->name + " = 4'");
    }
    return found->second;
  }
  auto result =
      apply(tree_->operation, tree_->left.evaluate(symbols), tree_->right.evaluate(symbols));
  if (!result) throw UserError("the size '" + str() + "' overflows or divides by zero");
  return *result;
}

std::string SizeExpr::str() const { return str(0); }

std::string SizeExpr::str(int outer_precedence) const {
  if (is_constant()) {
    // A negative constant binds like a subtraction.
    const bool parenthesise = value_ < 0 && outer_precedence > 1;
    return parenthesise ? "(" + std::to_string(value_) + ")" : std::to_string(value_);
  }
  const auto& [operation, name, left, right] = *tree_;
  if (operation == Operation::symbol) return name;
  if (operation == Operation::minimum || operation == Operation::maximum) {
    return (operation == Operation::minimum ? "Min(" : "Max(") + left.str(0) + ", " + right.str(0) +
           ")";
  }
  const auto [text, precedence] = spelling(operation);
  // Left-associative, except power, which Python reads from the right.
  const bool from_right = operation == Operation::power;
  std::string result = left.str(from_right ? precedence + 1 : precedence) + text +
                       right.str(from_right ? precedence : precedence + 1);
  return precedence < outer_precedence ? "(" + result + ")" : result;
}

bool operator==(const SizeExpr& left, const SizeExpr& right) {
  if (left.is_constant() || right.is_constant()) {
    return left.is_constant() && right.is_constant() && left.value_ == right.value_;
  }
  if (left.tree_ == right.tree_) return true;
  return left.tree_->operation == right.tree_->operation && left.tree_->name == right.tree_->name &&
         left.tree_->left == right.tree_->left && left.tree_->right == right.tree_->right;
}

}  // namespace assay::graph
