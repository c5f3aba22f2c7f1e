// Settings that the observe room keeps.
#include "config/observe_settings.h"

#include <fstream>
#include <sstream>

#include "config_fixture.h"
#include "observe/observe.h"
#include "support/temporary_directory.h"

namespace assay::config {
namespace {

using observe::Component;
using observe::Level;

std::string read(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(ObserveSettings, TheEnvironmentIsReadAndAssayWinsOverTorch) {
  const Variable torch_logs("TORCH_LOGS", "+dynamo");
  const Variable torch_out("TORCH_LOGS_OUT", "/tmp/torch.log");
  const Variable trace("ASSAY_TRACE", "/tmp/trace.json");
  const observe::Settings settings = observe_settings();
  EXPECT_EQ(settings.logs.of(Component::dynamo), Level::debug);
  EXPECT_EQ(settings.logs_out, "/tmp/torch.log");
  EXPECT_EQ(settings.trace, "/tmp/trace.json");
  for (const char* text : {"aot", ""}) {
    const Variable assay_logs("ASSAY_LOGS", text);
    EXPECT_EQ(observe_settings().logs.of(Component::dynamo), Level::warning);
  }
}

TEST(ObserveSettings, ErrorsNameTheVariableTheyCameFrom) {
  const Variable torch_logs("TORCH_LOGS", "+dynamo");
  {
    const Variable assay_logs("ASSAY_LOGS", "dinamo");
    const auto message = error_of([] { observe_settings(); });
    EXPECT_TRUE(message.starts_with("ASSAY_LOGS: unknown name \"dinamo\"")) << message;
  }
  const Variable format("TORCH_LOGS_FORMAT", "%(mesage)s");
  const auto message = error_of([] { observe_settings(); });
  EXPECT_TRUE(message.starts_with("TORCH_LOGS_FORMAT: unknown key \"mesage\"")) << message;
}

TEST(ObserveSettings, AChangeTakesEffectAtOnceAndEndsWithThePatch) {
  const assay::testing::TemporaryDirectory directory;
  const auto file = directory.path() / "log.txt";
  ::testing::internal::CaptureStderr();
  {
    const PatchScope scope({assign<"logs">("aot"), assign<"logs_out">(file.string()),
                            assign<"logs_format">("%(name)s says %(message)s")});
    observe::log(Component::aot, Level::info, std::string("inside"));
    observe::log(Component::dynamo, Level::info, std::string("not asked for"));
  }
  observe::log(Component::aot, Level::info, std::string("after"));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(read(file), "aot says inside\n");
}

TEST(ObserveSettings, AValueThatCannotBeUsedIsAnErrorAndNothingIsSet) {
  const auto message = error_of([] { set<"logs">("dinamo"); });
  EXPECT_TRUE(message.starts_with("the setting logs: unknown name \"dinamo\"")) << message;
  EXPECT_EQ(get<"logs">(), "");
  EXPECT_THROW(PatchScope({assign<"logs">("+aot"), assign<"logs_out">("/nowhere/at/all.txt")}),
               UserError);
  EXPECT_EQ(get<"logs">(), "");
  EXPECT_EQ(get<"logs_out">(), "");
  EXPECT_FALSE(observe::wants(Component::aot, Level::debug)) << "what was pushed is taken back";
}

TEST(ObserveSettings, UnsettingTakesEffectAtOnce) {
  set<"logs">("+aot");
  EXPECT_TRUE(observe::wants(Component::aot, Level::debug));
  unset<"logs">();
  EXPECT_FALSE(observe::wants(Component::aot, Level::debug));
}

TEST(ObserveSettings, ATraceLastsAsLongAsItsPatch) {
  const assay::testing::TemporaryDirectory directory;
  const auto file = directory.path() / "trace.json";
  {
    const PatchScope scope({assign<"chrome_trace">(file.string())});
    const observe::Phase phase("inside_the_patch", Component::aot);
  }
  EXPECT_NE(read(file).find("inside_the_patch"), std::string::npos);
}

}  // namespace
}  // namespace assay::config
