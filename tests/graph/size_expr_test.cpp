#include "graph/size_expr.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "graph/annotation.h"

namespace assay::graph {
namespace {

using Operation = SizeExpr::Operation;

SizeExpr parse_size(const std::string& text) {
  const python::Source source{"size", text};
  python::Module module;
  return size_from_syntax(*python::parse_expression(source, module)).value();
}

TEST(SizeExpr, ConstantsFold) {
  EXPECT_EQ(parse_size("2*3 + 4"), SizeExpr(10));
  EXPECT_EQ(parse_size("-7 // 2"), SizeExpr(-4)) << "as Python rounds";
  EXPECT_EQ(parse_size("Mod(7, 4)"), SizeExpr(3));
  EXPECT_EQ(parse_size("2**3**2"), SizeExpr(512)) << "power reads from the right";
}

TEST(SizeExpr, SymbolsEvaluate) {
  const SizeExpr size = parse_size("32*s77 + Max(1, s0)//2");
  EXPECT_FALSE(size.is_constant());
  EXPECT_EQ(size.evaluate({{"s77", 4}, {"s0", 9}}), 132);
}

TEST(SizeExpr, TextReadsBackAsTheSameExpression) {
  for (const char* text :
       {"s0", "32*s77", "(s0 + 1)*(s1 - 2)", "s0//2//3", "s0//(2*s1)", "2**(s0 + 1)",
        "(s0 % 4) + 1", "s0 - (s1 - s2)", "Min(s0, 3)*2", "s0*(-2)"}) {
    const SizeExpr size = parse_size(text);
    EXPECT_EQ(parse_size(size.str()), size) << text << " printed as " << size.str();
  }
}

TEST(SizeExpr, ErrorsNameTheSymbolOrTheOverflow) {
  try {
    parse_size("s3*2").evaluate({});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'s3' has no value"), std::string::npos);
  }
  EXPECT_THROW(parse_size("s0*s0").evaluate({{"s0", INT64_MAX}}), UserError);
  EXPECT_THROW(parse_size("s0//0").evaluate({{"s0", 1}}), UserError);
}

}  // namespace
}  // namespace assay::graph
