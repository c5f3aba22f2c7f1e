// Random sizes: the canonical form, its text and its bounds agree with plain arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "assay/error.h"
#include "graph/annotation.h"
#include "graph/size_range.h"

namespace assay::graph {
namespace {

using Operation = SizeExpr::Operation;
using Value = std::optional<std::int64_t>;  // nothing: divides by zero or does not fit

// The same expression twice: as written, and in canonical form.
struct Sample {
  std::function<Value(const SymbolValues&)> value;
  SizeExpr size;
  std::string text;
};

Value apply(Operation operation, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (operation) {
    case Operation::add:
      return __builtin_add_overflow(left, right, &result) ? Value() : result;
    case Operation::subtract:
      return __builtin_sub_overflow(left, right, &result) ? Value() : result;
    case Operation::multiply:
      return __builtin_mul_overflow(left, right, &result) ? Value() : result;
    case Operation::minimum:
      return std::min(left, right);
    case Operation::maximum:
      return std::max(left, right);
    case Operation::power:
      if (right < 0) return {};
      result = 1;
      for (std::int64_t i = 0; i < right; ++i) {
        if (__builtin_mul_overflow(result, left, &result)) return {};
      }
      return result;
    default:
      break;
  }
  if (right == 0 || (left == INT64_MIN && right == -1)) return {};
  const std::int64_t rest = left % right;
  const bool rounds_up = rest != 0 && (left < 0) != (right < 0);
  if (operation == Operation::floor_divide) return left / right - (rounds_up ? 1 : 0);
  return rounds_up ? rest + right : rest;
}

class Random {
 public:
  explicit Random(std::uint64_t seed, bool with_large = true)
      : engine_(seed), with_large_(with_large) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }

  Sample sample(int depth) {
    if (depth == 0 || between(0, 4) == 0) return leaf();
    static constexpr Operation kOperations[] = {
        Operation::add,      Operation::add,          Operation::subtract, Operation::multiply,
        Operation::multiply, Operation::floor_divide, Operation::modulo,   Operation::power,
        Operation::minimum,  Operation::maximum};
    static constexpr const char* kSymbols[] = {"+",  "+", "-",  "*",   "*",
                                               "//", "%", "**", "Min", "Max"};
    const auto index = static_cast<std::size_t>(between(0, 9));
    const Operation operation = kOperations[index];
    Sample left = sample(depth - 1);
    Sample right = operation == Operation::power ? constant(between(0, 3)) : sample(depth - 1);
    Sample made;
    made.size = SizeExpr::binary(operation, left.size, right.size);
    const std::string symbol = kSymbols[index];
    made.text = index >= 8 ? symbol + "(" + left.text + ", " + right.text + ")"
                           : "(" + left.text + ") " + symbol + " (" + right.text + ")";
    made.value = [operation, left = left.value, right = right.value](const SymbolValues& symbols) {
      const Value a = left(symbols);
      const Value b = right(symbols);
      return a && b ? apply(operation, *a, *b) : Value();
    };
    return made;
  }

  SymbolValues values(const SizeSymbols& symbols) {
    SymbolValues made;
    for (const auto& [name, symbol] : symbols) {
      made[name] = between(std::max<std::int64_t>(symbol.range.low, -20),
                           std::min<std::int64_t>(symbol.range.high, 20));
    }
    return made;
  }

  SizeSymbols symbols() {
    SizeSymbols made;
    for (const char* name : {"s0", "s1", "s2"}) {
      const std::int64_t low = between(-6, 6);
      const std::int64_t high = between(low, 12);
      made[name].range = {between(0, 5) == 0 ? INT64_MIN : low,
                          between(0, 5) == 0 ? INT64_MAX : high};
    }
    return made;
  }

 private:
  static Sample constant(std::int64_t value) {
    return {[value](const SymbolValues&) { return value; }, value, std::to_string(value)};
  }

  Sample leaf() {
    if (between(0, 2) == 0) {
      static constexpr std::int64_t kLarge[] = {INT64_MAX, INT64_MIN, INT64_MAX / 2, 1 << 30};
      return constant(with_large_ && between(0, 30) == 0 ? kLarge[between(0, 3)] : between(-4, 8));
    }
    const std::string name = "s" + std::to_string(between(0, 2));
    return {[name](const SymbolValues& symbols) { return symbols.at(name); },
            SizeExpr::symbol(name), name};
  }

  std::mt19937_64 engine_;
  bool with_large_;
};

Value evaluate(const SizeExpr& size, const SymbolValues& symbols) {
  try {
    return size.evaluate(symbols);
  } catch (const UserError&) {
    return {};
  }
}

constexpr int kSamples = 4000;

TEST(SizeProperty, TheCanonicalFormHasTheSameValue) {
  Random random(1);
  const SizeSymbols symbols = {{"s0", {}}, {"s1", {}}, {"s2", {}}};
  for (int i = 0; i < kSamples; ++i) {
    const Sample sample = random.sample(4);
    for (int k = 0; k < 8; ++k) {
      const SymbolValues values = random.values(symbols);
      const Value expected = sample.value(values);
      if (!expected) continue;
      ASSERT_EQ(evaluate(sample.size, values), expected)
          << sample.text << " became " << sample.size.str() << "; s0=" << values.at("s0")
          << " s1=" << values.at("s1") << " s2=" << values.at("s2");
    }
  }
}

// With small numbers only, what fails divides by zero, and must still do so.
TEST(SizeProperty, ADivisionByZeroIsNeverSimplifiedAway) {
  Random random(2, false);
  const SizeSymbols symbols = {{"s0", {{}, {-1, 1}}}, {"s1", {{}, {-1, 1}}}, {"s2", {{}, {-1, 1}}}};
  for (int i = 0; i < kSamples; ++i) {
    const Sample sample = random.sample(4);
    for (int k = 0; k < 8; ++k) {
      const SymbolValues values = random.values(symbols);
      if (sample.value(values)) continue;
      ASSERT_EQ(evaluate(sample.size, values), Value())
          << sample.text << " became " << sample.size.str();
    }
  }
}

TEST(SizeProperty, TextReadsBackAsTheSameExpression) {
  // Constants that overflow together are kept as they came, and may be grouped anew when read.
  Random random(3, false);
  for (int i = 0; i < kSamples; ++i) {
    const Sample sample = random.sample(4);
    const python::Source source{"size", sample.size.str()};
    python::Module module;
    const auto again = size_from_syntax(*python::parse_expression(source, module));
    ASSERT_TRUE(again.has_value()) << sample.size.str();
    ASSERT_EQ(*again, sample.size)
        << sample.text << " became " << sample.size.str() << ", read as " << again->str();
    ASSERT_EQ(again->str(), sample.size.str());
  }
}

TEST(SizeProperty, BoundsContainTheValue) {
  Random random(4);
  for (int i = 0; i < kSamples; ++i) {
    const Sample sample = random.sample(4);
    const SizeSymbols symbols = random.symbols();
    const SizeRange range = bounds(sample.size, symbols);
    for (int k = 0; k < 16; ++k) {
      const SymbolValues values = random.values(symbols);
      const Value value = evaluate(sample.size, values);
      if (!value) continue;
      ASSERT_TRUE(range.contains(*value))
          << sample.size.str() << " is " << *value << ", not in [" << range.low << ", "
          << range.high << "]; s0=" << values.at("s0") << " s1=" << values.at("s1")
          << " s2=" << values.at("s2");
    }
  }
}

TEST(SizeProperty, SimplifyingKeepsTheValueWithinTheRanges) {
  Random random(5);
  for (int i = 0; i < kSamples; ++i) {
    const Sample sample = random.sample(4);
    const SizeSymbols symbols = random.symbols();
    const SizeExpr simple = simplify(sample.size, symbols);
    for (int k = 0; k < 16; ++k) {
      const SymbolValues values = random.values(symbols);
      const Value expected = evaluate(sample.size, values);
      if (!expected) continue;
      ASSERT_EQ(evaluate(simple, values), expected)
          << sample.size.str() << " became " << simple.str();
    }
  }
}

}  // namespace
}  // namespace assay::graph
