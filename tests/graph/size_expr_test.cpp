#include "graph/size_expr.h"

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

TEST(SizeExpr, ConstantsFold) {
  EXPECT_EQ(parse_size("2*3 + 4"), SizeExpr(10));
  EXPECT_EQ(parse_size("-7 // 2"), SizeExpr(-4)) << "as Python rounds";
  EXPECT_EQ(parse_size("Mod(7, 4)"), SizeExpr(3));
  EXPECT_EQ(parse_size("-7 % 4"), SizeExpr(1));
  EXPECT_EQ(parse_size("7 % -4"), SizeExpr(-1));
  EXPECT_EQ(parse_size("2**3**2"), SizeExpr(512)) << "power reads from the right";
  EXPECT_EQ(parse_size("-9223372036854775808"), SizeExpr(INT64_MIN));
}

TEST(SizeExpr, SymbolsEvaluate) {
  const SizeExpr size = parse_size("32*s77 + Max(1, s0)//2");
  EXPECT_FALSE(size.is_constant());
  EXPECT_EQ(size.evaluate({{"s77", 4}, {"s0", 9}}), 132);
}

TEST(SizeExpr, EqualSizesAreEqualExpressions) {
  const std::pair<const char*, const char*> table[] = {
      {"2*s0", "s0*2"},
      {"s0 + s0", "2*s0"},
      {"s0 + s1", "s1 + s0"},
      {"(s0 + 1) + (s1 + 2)", "s1 + 3 + s0"},
      {"s0*s1*s0", "s1*s0**2"},
      {"2*(s0 + 1)", "2*s0 + 2"},
      {"(2*s0 + 2)*s1", "2*s1*(1 + s0)"},
      {"(1 - s0)*s1", "-(s0 - 1)*s1"},
      {"(2*s0)**3", "8*s0**3"},
      {"s0 - s0", "0"},
      {"s0**0", "1"},
      {"(4*s0)//2", "2*s0"},
      {"(4*s0 + 6)//2", "2*s0 + 3"},
      {"(s0 + 5)//2", "(s0 + 1)//2 + 2"},
      {"(6*s0)//4", "(3*s0)//2"},
      {"s0//2//3", "s0//6"},
      {"s0//(-2)", "-s0//2"},
      {"(2*s0)//(2*s1)", "s0//s1"},
      {"CeilDiv(s0, 8)", "(s0 + 7)//8"},
      {"-(-s0//8)", "(s0 + 7)//8"},
      {"CeilToInt(IntTrueDiv(s0, 8))", "(s0 + 7)//8"},
      {"FloorToInt(IntTrueDiv(s0, 8))", "s0//8"},
      {"ModularIndexing(s0, 4, 8)", "(s0//4) % 8"},
      {"(4*s0) % 2", "0"},
      {"(4*s0 + 3) % 2", "1"},
      {"(5*s0 + 7) % 4", "(s0 + 3) % 4"},
      {"(2*s0) % 6", "2*(s0 % 3)"},
      {"(s0 % 8) % 4", "s0 % 4"},
      {"Max(s0, 1, s1)", "Max(s1, Max(1, s0))"},
      {"Max(s0, s0 + 1)", "s0 + 1"},
      {"Min(3, s0, 5)", "Min(s0, 3)"},
      {"Max(s0, s0)", "s0"},
  };
  for (const auto& [left, right] : table) {
    EXPECT_EQ(parse_size(left), parse_size(right))
        << left << " is " << parse_size(left).str() << ", " << right << " is "
        << parse_size(right).str();
  }
  EXPECT_FALSE(parse_size("s0//2*2") == parse_size("s0")) << "rounding is kept";
  EXPECT_FALSE(parse_size("s0//s0") == SizeExpr(1)) << "s0 may be 0";
}

TEST(SizeExpr, TextIsWhatStockWrites) {
  for (const char* text :
       {"s0", "32*s77", "s77 + 1", "s77 - 1", "-s0 + s1", "s27*s77", "s0**2 + s0 + 1", "8*(s0//2)",
        "(s0 + 7)//8", "Max(1, s0)", "(s0 % 4) + 1", "2**(s0 + 1)"}) {
    EXPECT_EQ(parse_size(text).str(), text);
  }
  EXPECT_EQ(parse_size("Max(1, s0)").str(SizeExpr::Style::python), "max(1, s0)");
}

TEST(SizeExpr, TextReadsBackAsTheSameExpression) {
  for (const char* text :
       {"(s0 + 1)*(s1 - 2)", "s0//2//3", "s0//(2*s1)", "s0 - (s1 - s2)", "Min(s0, 3)*2", "s0*(-2)",
        "(-2)**s0", "0*(s0//s1)", "s0 - 9223372036854775807 - 9223372036854775807",
        "9223372036854775807*4*s0", "s1 + (-9223372036854775808)*s0", "0 - (-9223372036854775808)",
        "s0//0", "(s0 % s1)*3"}) {
    const SizeExpr size = parse_size(text);
    EXPECT_EQ(parse_size(size.str()), size) << text << " printed as " << size.str();
  }
}

TEST(SizeExpr, SymbolsAreReplaced) {
  const SizeExpr size = parse_size("s0*s1 + s0//2");
  EXPECT_EQ(size.substitute({{"s0", 4}}), parse_size("4*s1 + 2"));
  EXPECT_EQ(size.substitute({{"s0", parse_size("2*u0")}}), parse_size("2*u0*s1 + u0"));
  std::vector<std::string> names;
  size.for_each_symbol([&](const std::string& name) { names.push_back(name); });
  EXPECT_EQ(names, (std::vector<std::string>{"s0", "s1", "s0"}));
}

std::string failure_of(const std::string& text, const SymbolValues& symbols) {
  try {
    return "the value " + std::to_string(parse_size(text).evaluate(symbols));
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(SizeExpr, ErrorsNameTheSymbolOrTheOverflow) {
  EXPECT_NE(failure_of("s3*2", {}).find("'s3' has no value"), std::string::npos);
  for (const char* text :
       {"s0*s0", "s0 + 1", "9223372036854775807 + 1", "s0//0", "0*(s0//0)", "s0//0 - s0//0",
        "(s0 % (s0 - s0)) % 1", "(s0//0)**0", "2**(-1)", "Max(9223372036854775807 + 1, s0)"}) {
    const std::string failure = failure_of(text, {{"s0", INT64_MAX}});
    EXPECT_NE(failure.find("overflows or divides by zero"), std::string::npos)
        << text << " gives " << failure;
  }
}

TEST(SizeExpr, OnlyTheResultMustFit) {
  EXPECT_EQ(failure_of("s0*s0//s0", {{"s0", INT64_MAX}}), "the value 9223372036854775807");
  EXPECT_EQ(failure_of("9223372036854775807 + s0 - 9223372036854775807", {{"s0", 3}}),
            "the value 3");
}

}  // namespace
}  // namespace assay::graph
