/// \file Integer expressions for sizes, strides and storage offsets.
///
/// A size is a constant, or mentions symbols (`s77`, `32*s77`, `s0//2`) when shapes are dynamic.
/// Expressions are immutable, cheap to copy, and always in canonical form: `s0*2` and `s0 + s0` are
/// the expression `2*s0`, so equality of sizes is equality of expressions. A constant needs no
/// allocation. What ranges of symbols imply is in graph/size_range.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::graph {

/// What each symbol stands for in one run, e.g. `{"s77": 4}`.
using SymbolValues = std::map<std::string, std::int64_t, std::less<>>;

class SizeExpr {
 public:
  enum class Operation {
    constant,
    symbol,
    add,
    subtract,  ///< Accepted by `binary` only; kept as the sum with a factor of -1.
    multiply,
    floor_divide,
    modulo,
    power,
    minimum,
    maximum
  };
  /// How minimum and maximum are spelled: sympy's `Max`, as in annotations, or Python's `max`.
  enum class Style { sympy, python };

  SizeExpr(std::int64_t value = 0) : value_(value) {}  // NOLINT: sizes read best as plain numbers
  static SizeExpr symbol(std::string name);
  /// The canonical form of `left operation right`: constants folded, nested sums, products, minima
  /// and maxima flattened and sorted, equal terms and factors collected, divisions of exact
  /// multiples by a constant carried out. Products of sums are not expanded. What divides by zero
  /// stays in the expression and is an error of `evaluate`; so is a value that does not fit 64
  /// bits.
  static SizeExpr binary(Operation operation, SizeExpr left, SizeExpr right);
  /// `left / right` rounded up.
  static SizeExpr ceil_divide(const SizeExpr& left, const SizeExpr& right);

  bool is_constant() const { return tree_ == nullptr; }
  std::optional<std::int64_t> constant() const;

  Operation operation() const;
  /// The name of a symbol; empty for anything else.
  const std::string& name() const;
  /// The operands of an operation. Sums, products, minima and maxima have two or more; a sum's
  /// constant is its last operand, a product's its first.
  const std::vector<SizeExpr>& operands() const;

  /// Combines the results of `visit` for the operands, two at a time from the left.
  template <typename Visit, typename Combine>
  auto reduce(const Visit& visit, const Combine& combine) const -> decltype(visit(operands()[0])) {
    auto result = visit(operands()[0]);
    for (std::size_t i = 1; i < operands().size(); ++i) {
      result = combine(operation(), result, visit(operands()[i]));
    }
    return result;
  }
  /// Computes a result bottom-up from `visitor.constant(value)`, `visitor.symbol(name)` and
  /// `visitor.operation(operation, left, right)`.
  template <typename Visitor>
  auto fold(const Visitor& visitor) const -> decltype(visitor.constant(std::int64_t{})) {
    using Result = decltype(visitor.constant(std::int64_t{}));
    if (is_constant()) return visitor.constant(value_);
    if (operation() == Operation::symbol) return visitor.symbol(name());
    return reduce([&](const SizeExpr& operand) -> Result { return operand.fold(visitor); },
                  [&](Operation operation, const Result& left, const Result& right) {
                    return visitor.operation(operation, left, right);
                  });
  }
  /// Calls `visit` with the name of every symbol, once per mention.
  void for_each_symbol(const std::function<void(const std::string&)>& visit) const;

  /// True if some values of the symbols make it divide by zero or raise to a negative power.
  bool may_divide_by_zero() const;

  /// The value under `symbols`. Throws `UserError` for an unbound symbol, a division by zero, or a
  /// value that does not fit 64 bits.
  std::int64_t evaluate(const SymbolValues& symbols) const;
  /// The expression with symbols replaced; those not in `replacements` stay.
  SizeExpr substitute(const std::map<std::string, SizeExpr, std::less<>>& replacements) const;

  /// Python text of the expression, which `size_from_syntax` (graph/annotation.h) reads back.
  std::string str(Style style = Style::sympy) const;

  friend bool operator==(const SizeExpr& left, const SizeExpr& right);
  /// Any total order, by structure: for sorting and maps, not by value.
  friend std::strong_ordering compare(const SizeExpr& left, const SizeExpr& right);

 private:
  friend struct SizeTree;
  struct Tree;

  std::int64_t value_ = 0;
  std::shared_ptr<const Tree> tree_;
};

std::strong_ordering compare(const SizeExpr& left, const SizeExpr& right);

}  // namespace assay::graph
