/// \file Integer expressions for sizes, strides and storage offsets.
///
/// A size is a constant today and may mention symbols (`s77`, `32*s77`, `s0//2`) when shapes are
/// dynamic. Expressions are immutable and cheap to copy; a constant needs no allocation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace assay::graph {

/// What each symbol stands for in one run, e.g. `{"s77": 4}`.
using SymbolValues = std::map<std::string, std::int64_t, std::less<>>;

class SizeExpr {
 public:
  enum class Operation {
    constant,
    symbol,
    add,
    subtract,
    multiply,
    floor_divide,
    modulo,
    power,
    minimum,
    maximum
  };

  SizeExpr(std::int64_t value = 0) : value_(value) {}  // NOLINT: sizes read best as plain numbers
  static SizeExpr symbol(std::string name);
  /// Builds `left operation right`, folding constants. An overflow or division by zero is not
  /// folded away: it surfaces from `evaluate`.
  static SizeExpr binary(Operation operation, SizeExpr left, SizeExpr right);

  bool is_constant() const { return tree_ == nullptr; }
  std::optional<std::int64_t> constant() const;

  /// The value under `symbols`. Throws `UserError` for an unbound symbol, an overflow or a
  /// division by zero.
  std::int64_t evaluate(const SymbolValues& symbols) const;

  /// Python text of the expression, with only the parentheses that are needed.
  std::string str() const;

  friend bool operator==(const SizeExpr& left, const SizeExpr& right);

 private:
  struct Tree;
  std::string str(int outer_precedence) const;

  std::int64_t value_ = 0;
  std::shared_ptr<const Tree> tree_;
};

}  // namespace assay::graph
