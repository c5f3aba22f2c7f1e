#include "graph/size_range.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "graph/annotation.h"

namespace assay::graph {
namespace {

SizeExpr parse_size(const std::string& text) {
  const python::Source source{"size", text};
  python::Module module;
  return size_from_syntax(*python::parse_expression(source, module)).value();
}

const SizeSymbols kSymbols = {
    {"s0", {4, {2, INT64_MAX}}}, {"s1", {{}, {0, 7}}}, {"s2", {{}, {-3, 3}}}};

TEST(SizeRange, FollowsTheOperations) {
  const std::pair<const char*, SizeRange> table[] = {
      {"s0", {2, INT64_MAX}},
      {"u0", {INT64_MIN, INT64_MAX}},
      {"s1 + 1", {1, 8}},
      {"s1*s2", {-21, 21}},
      {"4*s1 - s2", {-3, 31}},
      {"s1//2", {0, 3}},
      {"s1//s0", {0, 3}},
      {"s1 % 4", {0, 3}},
      {"s1 % s0", {0, 7}},
      {"s0 % 4", {0, 3}},
      {"s2**2", {0, 9}},
      {"s2**3", {-27, 27}},
      {"2**s1", {1, 128}},
      {"Max(s1, 3)", {3, 7}},
      {"Min(s0, s1)", {0, 7}},
      {"s0*s0", {4, INT64_MAX}},
      {"s0*s0//s0", {0, INT64_MAX}},
      {"s1//s2", {-7, 7}},
  };
  for (const auto& [text, expected] : table) {
    const SizeRange found = bounds(parse_size(text), kSymbols);
    EXPECT_EQ(found, expected) << text << " is in [" << found.low << ", " << found.high << "]";
  }
}

TEST(SizeRange, SimplifiesWhatTheRangesDecide) {
  const std::pair<const char*, const char*> table[] = {
      {"s0//s0", "1"},
      {"(s0*u0)//s0", "u0"},
      {"(s0*u0 + u1)//s0", "u0 + u1//s0"},
      {"(2*s0*u0 + 2*s0)//(2*s0)", "u0 + 1"},
      {"((s0 + 1)*u0)//(s0 + 1)", "u0"},
      {"(s0*u0) % s0", "0"},
      {"s1//8", "0"},
      {"s1 % 8", "s1"},
      {"s1 % 7", "s1 % 7"},
      {"Max(1, s0)", "s0"},
      {"Max(u0, u0 + s1)", "s1 + u0"},
      {"Min(s0, 1)", "1"},
      {"0*(u0//s0)", "0"},
      {"s1//s1", "s1//s1"},
      {"(s2*u0)//s2", "(s2*u0)//s2"},
  };
  for (const auto& [text, expected] : table) {
    EXPECT_EQ(simplify(parse_size(text), kSymbols), parse_size(expected))
        << text << " became " << simplify(parse_size(text), kSymbols).str();
  }
}

TEST(SizeRange, SimplifyingKeepsAnErrorOfTheDivisor) {
  // Where s1 is 0, the divisor has no value.
  for (const char* text : {"s1 % Max(20, 1//s1)", "s1 // Max(20, 1//s1)"}) {
    const SizeExpr simple = simplify(parse_size(text), kSymbols);
    EXPECT_TRUE(simple.may_divide_by_zero()) << text << " became " << simple.str();
    EXPECT_THROW(simple.evaluate({{"s1", 0}}), UserError) << text;
    EXPECT_EQ(simple.evaluate({{"s1", 2}}), parse_size(text).evaluate({{"s1", 2}}));
  }
}

}  // namespace
}  // namespace assay::graph
