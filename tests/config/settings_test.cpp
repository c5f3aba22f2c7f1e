// The table, and the typed accessors made from it.
#include "config/settings.h"

#include <limits>
#include <set>

#include "config/describe.h"
#include "config_fixture.h"

namespace assay::config {
namespace {

// What must not compile.
static_assert(IsSetting<"repro_level">);
static_assert(!IsSetting<"repro_levl">);
static_assert(FitsSetting<int, "repro_level">);
static_assert(!FitsSetting<bool, "repro_level">);
static_assert(!FitsSetting<double, "repro_level">);
static_assert(!FitsSetting<const char*, "repro_level">);
static_assert(FitsSetting<bool, "verbose">);
static_assert(!FitsSetting<int, "verbose">);
static_assert(FitsSetting<int, "repro_tolerance">);
static_assert(FitsSetting<const char*, "logs">);
static_assert(!FitsSetting<int, "logs">);
static_assert(std::same_as<decltype(get<"verbose">()), bool>);
static_assert(std::same_as<decltype(get<"repro_level">()), std::int64_t>);
static_assert(std::same_as<decltype(get<"repro_tolerance">()), double>);
static_assert(std::same_as<decltype(get<"logs">()), const std::string&>);

TEST(Settings, EveryRowIsComplete) {
  std::set<std::string_view> names;
  std::set<std::string_view> variables;
  for (const Setting& setting : settings) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name << " is there twice";
    EXPECT_FALSE(setting.doc.empty()) << setting.name;
    EXPECT_EQ(setting.doc.find_first_of("\n|"), std::string_view::npos)
        << setting.name << ": one line that fits into a table";
    EXPECT_TRUE(setting.variables.ours.starts_with("ASSAY_")) << setting.name;
    EXPECT_FALSE(setting.variables.pytorchs.starts_with("ASSAY_")) << setting.name;
    for (const std::string_view name : setting.variables.names()) {
      EXPECT_TRUE(name.empty() || variables.insert(name).second) << name << " is there twice";
    }
    EXPECT_NO_THROW(checked_value(setting, default_value(setting))) << setting.name;
    EXPECT_TRUE(setting.push == nullptr || setting.is_text()) << setting.name;
  }
}

TEST(Settings, HavePyTorchsNames) {
  for (const char* name :
       {"repro_after", "repro_level", "repro_forward_only", "repro_ignore_non_fp",
        "repro_tolerance", "cache_size_limit", "suppress_errors", "verbose", "debug_dir_root",
        "replay_record_enabled", "fallback_random"}) {
    EXPECT_EQ(find_setting(name).name, name);
  }
}

TEST(Settings, WithoutAnyoneSettingThemTheyHaveTheirDefaults) {
  const NoVariables clean;
  EXPECT_EQ(get<"repro_after">(), "");
  EXPECT_EQ(get<"repro_level">(), 2);
  EXPECT_EQ(get<"repro_tolerance">(), 1e-3);
  EXPECT_FALSE(get<"repro_forward_only">());
  EXPECT_EQ(get<"debug_dir_root">(), "torch_compile_debug");
  for (const Description& row : describe_settings()) {
    EXPECT_EQ(row.value, default_value(*row.setting)) << row.setting->name;
    EXPECT_EQ(to_string(row.origin), "default") << row.setting->name;
  }
}

TEST(Settings, ANameHasItsPlaceInTheTable) {
  for (std::size_t index = 0; index < settings.size(); ++index) {
    EXPECT_EQ(find_index(settings[index].name), index);
  }
}

TEST(Settings, AnUnknownNameIsAnErrorWithTheNearest) {
  EXPECT_THROW(find_setting("repro_levl"), UnknownSetting);
  const std::string message = error_of([] { find_setting("repro_levl"); });
  EXPECT_NE(message.find("there is no setting 'repro_levl'"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean repro_level? `assay config` lists"), std::string::npos)
      << message;
  const std::string far_off = error_of([] { find_setting("colour"); });
  EXPECT_EQ(far_off.find("did you mean"), std::string::npos) << far_off;
}

TEST(Settings, AValueOfAnotherTypeOrOutOfRangeIsAnError) {
  const Setting& level = find_setting("repro_level");
  EXPECT_THROW(checked_value(level, true), WrongType);
  EXPECT_THROW(checked_value(level, 2.0), WrongType);
  EXPECT_THROW(checked_value(level, "2"), WrongType);
  EXPECT_THROW(checked_value(find_setting("verbose"), std::int64_t{1}), WrongType);
  EXPECT_THROW(checked_value(find_setting("logs"), std::int64_t{1}), WrongType);
  EXPECT_EQ(checked_value(find_setting("repro_tolerance"), std::int64_t{1}), Value(1.0));
  for (const std::int64_t wrong : {0, 5, -1}) {
    const std::string message = error_of([&] { checked_value(level, wrong); });
    EXPECT_NE(
        message.find("the setting repro_level cannot be the integer " + std::to_string(wrong)),
        std::string::npos)
        << message;
    EXPECT_NE(message.find("expected an integer from 1 to 4"), std::string::npos) << message;
  }
  EXPECT_THROW(checked_value(find_setting("repro_tolerance"), -1.0), UserError);
  EXPECT_THROW(
      checked_value(find_setting("repro_tolerance"), std::numeric_limits<double>::infinity()),
      UserError);
  EXPECT_THROW(set<"repro_after">("dynamos"), UserError);
  EXPECT_THROW(set<"repro_inputs">(""), UserError);
  EXPECT_EQ(get<"repro_after">(), "") << "nothing was set";
}

TEST(Settings, AreReadWithoutCopies) {
  const PatchScope scope({assign<"debug_dir_root">("/somewhere/far/away/from/small/strings")});
  EXPECT_EQ(&get<"debug_dir_root">(), &get<"debug_dir_root">());
}

}  // namespace
}  // namespace assay::config
