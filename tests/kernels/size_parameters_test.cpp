// Kernels as text for several sizes.
#include "kernels/emit/size_parameters.h"

#include <gtest/gtest.h>

namespace assay::kernels {
namespace {

using Numbers = std::vector<std::string>;

TEST(SizeParameters, TakesOutNumbersButNotThoseOfNamesAndArrays) {
  const KernelOutline found =
      outline_of("f32 t_3[256]; x1 = load_f32x16(p + 40 * i0 + 16) / 1e-05f + 0x1p3f + 2L - 0.5;");
  EXPECT_EQ(found.numbers, (Numbers{"40", "16", "1e-05f"}));
  EXPECT_EQ(found.outline,
            "f32 t_3[256]; x1 = load_f32x16(p + # * i0 + #) / #f + 0x1p3f + 2L - 0.5;");
}

TEST(SizeParameters, AlignmentsAreConstants) {
  const KernelOutline found = outline_of("f32 t[9] __attribute__((aligned(64))); x = t + 64;");
  EXPECT_EQ(found.numbers, (Numbers{"64"}));
  EXPECT_EQ(found.outline, "f32 t[9] __attribute__((aligned(64))); x = t + #;");
}

TEST(SizeParameters, PassesTheNumbersThatDiffer) {
  const auto text = [](const char* rows, const char* scale, const char* lanes) {
    return outline_of(std::string("(void* const* buffers, long begin, long end) {\n  for (i < ") +
                      rows + "; i += " + lanes + ") x[i] = " + rows + " / " + scale + ";\n}\n");
  };
  const GeneralKernel general(text("96", "3e+01f", "16"), text("40", "2e+01f", "16"), 2);
  EXPECT_EQ(general.text(),
            "(void* const* buffers, long begin, long end) {\n"
            "  const long* const sizes = (const long*)buffers[2];\n"
            "  const long s0 = sizes[0];\n"
            "  const float s1 = *(const float*)(sizes + 1);\n"
            "  for (i < s0; i += 16) x[i] = s0 / s1;\n}\n");
  const auto values = general.values(text("7", "5e-01f", "16"));
  ASSERT_TRUE(values.has_value());
  EXPECT_EQ((*values)[0], 7);
  EXPECT_EQ((*values)[1], 0x3f000000);
  // Another number than those two is another one: the text does not serve it.
  EXPECT_FALSE(general.values(text("7", "5e-01f", "8")).has_value());
}

TEST(SizeParameters, NumbersThatWereEqualMustStayEqual) {
  const GeneralKernel general(outline_of("{\n2 + 2"), outline_of("{\n3 + 3"), 0);
  EXPECT_TRUE(general.values(outline_of("{\n5 + 5")).has_value());
  EXPECT_FALSE(general.values(outline_of("{\n5 + 6")).has_value());
}

}  // namespace
}  // namespace assay::kernels
