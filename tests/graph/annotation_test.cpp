#include "graph/annotation.h"

#include <gtest/gtest.h>

namespace assay::graph {
namespace {

TEST(Annotation, ReadsWhatStockPrints) {
  const auto value = parse_annotation("f32[s77, 8][8, 1]cpu");
  ASSERT_TRUE(value && value->tensor());
  EXPECT_EQ(value->tensor()->dtype, c10::ScalarType::Float);
  EXPECT_EQ(value->tensor()->sizes[0], SizeExpr::symbol("s77"));
  EXPECT_EQ(value->tensor()->strides[1], SizeExpr(1));
}

TEST(Annotation, StridesAndDeviceMayBeLeftOut) {
  const auto value = parse_annotation("i64[2, 3]");
  ASSERT_TRUE(value && value->tensor());
  EXPECT_EQ(value->tensor()->strides, (std::vector<SizeExpr>{3, 1}));
  EXPECT_TRUE(value->tensor()->device.is_cpu());
}

TEST(Annotation, TextReadsBack) {
  for (const char* text :
       {"f32[][]cpu", "b8[4, 0][1, 1]cpu", "bf16[2][1]cuda:0", "f64[3, 4][1, 3]cpu requires_grad",
        "Sym(s0)", "Sym(2*s0)", "(f32[4][1]cpu, (i64[4][1]cpu, Sym(3)), ?)", "()"}) {
    const auto value = parse_annotation(text);
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(annotation_text(*value), text);
  }
}

TEST(Annotation, OtherTextsMeanNothing) {
  for (const char* text : {"torch.Tensor", "f32", "f32[", "f32[2][1, 1]cpu", "f33[2]", "",
                           "f32[2][1]nowhere", "Sym(", "f32[os.system('x')]"}) {
    EXPECT_FALSE(parse_annotation(text)) << text;
  }
  EXPECT_FALSE(parse_annotation(std::string(1000, '(') + std::string(1000, ')')));
}

}  // namespace
}  // namespace assay::graph
