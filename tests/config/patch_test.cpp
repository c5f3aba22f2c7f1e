// Setting values, for a while or for good.
#include "config_fixture.h"

#include <memory>

#include "config/describe.h"

namespace assay::config {
namespace {

TEST(Patch, SetsAndRestores) {
  {
    const PatchScope scope({assign<"repro_after">("aot"), assign<"repro_level">(4),
                            assign<"repro_tolerance">(1), assign<"repro_forward_only">(true)});
    EXPECT_EQ(get<"repro_after">(), "aot");
    EXPECT_EQ(get<"repro_level">(), 4);
    EXPECT_EQ(get<"repro_tolerance">(), 1.0);
    EXPECT_TRUE(get<"repro_forward_only">());
    EXPECT_EQ(source<"repro_level">(), "the setting repro_level");
    EXPECT_EQ(to_string(current_value(0).second), "set");
  }
  EXPECT_EQ(get<"repro_after">(), "");
  EXPECT_EQ(get<"repro_level">(), 2);
  EXPECT_EQ(to_string(current_value(0).second), "default");
}

TEST(Patch, NestsAndRestoresExactly) {
  const Variable level("ASSAY_REPRO_LEVEL", "1");
  {
    const PatchScope outer({assign<"repro_level">(2)});
    {
      const PatchScope inner({assign<"repro_level">(3)});
      EXPECT_EQ(get<"repro_level">(), 3);
    }
    EXPECT_EQ(get<"repro_level">(), 2);
  }
  EXPECT_EQ(get<"repro_level">(), 1);
  EXPECT_EQ(source<"repro_level">(), "ASSAY_REPRO_LEVEL");
}

TEST(Patch, ScopesThatEndInAnotherOrderTakeBackTheirOwnValueOnly) {
  auto first = std::make_unique<PatchScope>(std::vector{assign<"repro_level">(3)});
  auto second = std::make_unique<PatchScope>(std::vector{assign<"repro_level">(4)});
  first.reset();
  EXPECT_EQ(get<"repro_level">(), 4);
  second.reset();
  EXPECT_EQ(get<"repro_level">(), 2);
}

TEST(Patch, SettingInsideAPatchEndsWithIt) {
  {
    const PatchScope scope({assign<"repro_level">(3)});
    set<"repro_level">(4);
    EXPECT_EQ(get<"repro_level">(), 4);
  }
  EXPECT_EQ(get<"repro_level">(), 2);
}

TEST(Patch, SettingOutsideLastsAndAPatchRestoresIt) {
  set<"cache_size_limit">(16);
  {
    const PatchScope scope({assign<"cache_size_limit">(1)});
    EXPECT_EQ(get<"cache_size_limit">(), 1);
  }
  EXPECT_EQ(get<"cache_size_limit">(), 16);
  unset<"cache_size_limit">();
}

TEST(Patch, UnsettingTakesAnAssignmentBack) {
  const Variable limit("ASSAY_CACHE_SIZE_LIMIT", "5");
  const std::size_t index = find_index("cache_size_limit");
  unset<"cache_size_limit">();
  EXPECT_EQ(get<"cache_size_limit">(), 5) << "nothing was set";
  set<"cache_size_limit">(16);
  EXPECT_EQ(to_string(current_value(index).second), "set");
  unset<"cache_size_limit">();
  EXPECT_EQ(get<"cache_size_limit">(), 5);
  EXPECT_EQ(to_string(current_value(index).second), "environment variable ASSAY_CACHE_SIZE_LIMIT");
}

TEST(Patch, UnsettingLeavesAPatchAsItIs) {
  set<"cache_size_limit">(16);
  {
    const PatchScope scope({assign<"cache_size_limit">(1)});
    unset<"cache_size_limit">();
    EXPECT_EQ(get<"cache_size_limit">(), 1);
  }
  EXPECT_EQ(get<"cache_size_limit">(), 8);
}

TEST(Patch, AWrongValueSetsNothingAtAll) {
  EXPECT_THROW(PatchScope({assign<"repro_after">("aot"), assign<"repro_level">(9)}), UserError);
  EXPECT_EQ(get<"repro_after">(), "");
  EXPECT_EQ(get<"repro_level">(), 2);
}

TEST(Patch, WithAReservedSettingWarns) {
  testing::internal::CaptureStderr();
  { const PatchScope scope({assign<"fallback_random">(true)}); }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("the setting fallback_random has no effect yet"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::config
