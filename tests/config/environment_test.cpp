// Settings from the environment.
#include "config_fixture.h"

#include "config/describe.h"

namespace assay::config {
namespace {

Description describe(std::string_view name) {
  for (Description& row : describe_settings()) {
    if (row.setting->name == name) return std::move(row);
  }
  throw UnknownSetting(name);
}

TEST(ConfigEnvironment, GivesEveryTypeOfValue) {
  const Variable after("TORCHDYNAMO_REPRO_AFTER", "aot");
  const Variable level("TORCHDYNAMO_REPRO_LEVEL", "4");
  const Variable forward("TORCHDYNAMO_REPRO_FORWARD_ONLY", "1");
  const Variable tolerance("ASSAY_REPRO_TOLERANCE", "1e-2");
  const Variable passes("ASSAY_DISABLE_PASSES", "noops,dead_code");
  EXPECT_EQ(get<"repro_after">(), "aot");
  EXPECT_EQ(get<"repro_level">(), 4);
  EXPECT_TRUE(get<"repro_forward_only">());
  EXPECT_EQ(get<"repro_tolerance">(), 1e-2);
  EXPECT_EQ(get<"disable_passes">(), "noops,dead_code");
  EXPECT_EQ(to_string(describe("repro_level").origin),
            "environment variable TORCHDYNAMO_REPRO_LEVEL");
  EXPECT_EQ(source<"disable_passes">(), "ASSAY_DISABLE_PASSES");
}

TEST(ConfigEnvironment, OurPrefixWinsEvenWhenSetToNothing) {
  const Variable stock("TORCHDYNAMO_REPRO_AFTER", "aot");
  EXPECT_EQ(get<"repro_after">(), "aot");
  {
    const Variable ours("ASSAY_REPRO_AFTER", "dynamo");
    EXPECT_EQ(get<"repro_after">(), "dynamo");
  }
  const Variable off("ASSAY_REPRO_AFTER", "");
  EXPECT_EQ(get<"repro_after">(), "");
  const Variable level("TORCHDYNAMO_REPRO_LEVEL", "");
  EXPECT_EQ(get<"repro_level">(), 2) << "nothing is the default";
}

TEST(ConfigEnvironment, TheVariableOfTheDebugDirectoryNamesItsParent) {
  for (const char* folder : {"/somewhere", "/somewhere/"}) {
    const Variable parent("TORCH_COMPILE_DEBUG_DIR", folder);
    EXPECT_EQ(get<"debug_dir_root">(), "/somewhere/torch_compile_debug");
  }
}

TEST(ConfigEnvironment, SettingsOfOurDebugWrapperAreReadUnderBothPrefixes) {
  const Variable tolerance("TORCHDYNAMO_REPRO_TOLERANCE", "0.5");
  const Variable inputs("TORCHDYNAMO_REPRO_INPUTS", "shapes");
  const Variable reduce("TORCHDYNAMO_REDUCE", "launcher");
  EXPECT_EQ(get<"repro_tolerance">(), 0.5);
  EXPECT_EQ(get<"repro_inputs">(), "shapes");
  EXPECT_EQ(get<"reduce">(), "launcher");
}

TEST(ConfigEnvironment, IsReadOnceUntilItIsReloaded) {
  EXPECT_EQ(get<"repro_level">(), 2);
  setenv("ASSAY_REPRO_LEVEL", "3", 1);
  EXPECT_EQ(get<"repro_level">(), 2);
  { const PatchScope scope({assign<"repro_level">(4)}); }
  EXPECT_EQ(get<"repro_level">(), 2) << "what a patch restores is what was there before it";
  reload_environment();
  EXPECT_EQ(get<"repro_level">(), 3);
  unsetenv("ASSAY_REPRO_LEVEL");
  reload_environment();
  EXPECT_EQ(get<"repro_level">(), 2);
}

TEST(ConfigEnvironment, APatchBeforeTheFirstReadRestoresWhatTheEnvironmentSaidThen) {
  const Variable level("ASSAY_REPRO_LEVEL", "3");
  {
    const PatchScope scope({assign<"repro_level">(4)});
    setenv("ASSAY_REPRO_LEVEL", "1", 1);
  }
  EXPECT_EQ(get<"repro_level">(), 3);
}

TEST(ConfigEnvironment, WrongValuesAreErrorsThatNameTheVariableTheValueAndWhatIsAllowed) {
  for (const auto& [name, value, expected] :
       std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {"ASSAY_REPRO_AFTER", "dynamos", "expected dynamo, aot or nothing"},
           {"TORCHDYNAMO_REPRO_LEVEL", "5", "expected an integer from 1 to 4; it sets repro_level"},
           {"TORCHDYNAMO_REPRO_LEVEL", "two", "expected an integer from 1 to 4"},
           {"TORCHDYNAMO_REPRO_LEVEL", "2 ", "expected an integer from 1 to 4"},
           {"TORCHDYNAMO_REPRO_FORWARD_ONLY", "yes", "expected 0 or 1"},
           {"ASSAY_REPRO_IGNORE_NON_FP", "2", "expected 0 or 1"},
           {"ASSAY_REPRO_TOLERANCE", "-1", "expected a number such as 0.001"},
           {"ASSAY_REPRO_TOLERANCE", "inf", "expected a number"},
           {"ASSAY_REPRO_INPUTS", "none", "expected data or shapes"},
           {"ASSAY_REDUCE", "later", "expected now, launcher or nothing"},
           {"ASSAY_PASS_LIMIT", "many", "expected an integer from -1"},
           {"ASSAY_CACHE_SIZE_LIMIT", "99999999999999999999", "expected an integer from 0"}}) {
    const Variable variable(name, value);
    std::size_t found = 0;
    for (const Description& row : describe_settings()) {
      if (row.error.empty()) continue;
      ++found;
      EXPECT_TRUE(row.error.starts_with(std::string(name) + " is '" + value + "'")) << row.error;
      EXPECT_NE(row.error.find(expected), std::string::npos) << row.error;
    }
    EXPECT_EQ(found, 1U) << name << ": the other settings are as they were";
  }
}

TEST(ConfigEnvironment, ABadValueIsAnErrorAtEveryReadAndCanBeReplaced) {
  const Variable level("ASSAY_REPRO_LEVEL", "nine");
  for (int i = 0; i < 2; ++i) EXPECT_THROW(get<"repro_level">(), UserError);
  EXPECT_EQ(get<"repro_after">(), "") << "other settings work";
  {
    const PatchScope scope({assign<"repro_level">(4)});
    EXPECT_EQ(get<"repro_level">(), 4);
  }
  EXPECT_THROW(get<"repro_level">(), UserError) << "as it was before the patch";
}

}  // namespace
}  // namespace assay::config
