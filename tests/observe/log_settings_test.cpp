// The TORCH_LOGS grammar and the environment: what is accepted, what it means, what is refused.
#include "observe/log_settings.h"

#include "observe/log_names.h"
#include "observe_fixture.h"

namespace assay::observe {
namespace {

std::string refusal(const std::string& text) {
  return settings_error_of([&] { parse_logs(text); });
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(LogSettings, NothingSetShowsWarningsAndNoArtifact) {
  for (const std::string text : {"", "  "}) {
    const LogLevels levels = parse_logs(text);
    EXPECT_EQ(levels.of(Component::dynamo), Level::warning);
    EXPECT_EQ(levels.of(Artifact::output_code), Level::off);
    EXPECT_GT(levels.of(Artifact::graph), Level::debug);
  }
}

TEST(LogSettings, SignsSetLevelsOfComponents) {
  const LogLevels levels = parse_logs("+dynamo,aot,-inductor");
  EXPECT_EQ(levels.of(Component::dynamo), Level::debug);
  EXPECT_EQ(levels.of(Component::aot), Level::info);
  EXPECT_EQ(levels.of(Component::inductor), Level::error);
  EXPECT_EQ(levels.of(Component::sandbox), Level::warning);
}

TEST(LogSettings, ArtifactsAreSwitchedOnByNameAndOffByMinus) {
  const LogLevels levels = parse_logs("+dynamo,output_code,+fusion,-graph");
  EXPECT_EQ(levels.of(Artifact::output_code), Level::debug);
  EXPECT_EQ(levels.of(Artifact::fusion), Level::debug);
  EXPECT_EQ(levels.of(Artifact::graph), Level::off);
  EXPECT_EQ(levels.of(Artifact::graph_code), Level::debug) << "follows its parent, +dynamo";
}

TEST(LogSettings, DebugOfAParentDoesNotSwitchOnWhatMustBeNamed) {
  const LogLevels levels = parse_logs("+inductor,+dynamo");
  EXPECT_EQ(levels.of(Artifact::output_code), Level::off);
  EXPECT_EQ(levels.of(Artifact::bytecode), Level::off);
  EXPECT_EQ(levels.of(Artifact::guards), Level::debug);
}

TEST(LogSettings, AllIsEveryComponentThatIsNotNamed) {
  for (const std::string text : {"+all,-aot", "-aot,+torch"}) {
    const LogLevels levels = parse_logs(text);
    EXPECT_EQ(levels.of(Component::sandbox), Level::debug);
    EXPECT_EQ(levels.of(Component::aot), Level::error);
    EXPECT_EQ(levels.of(Artifact::graph), Level::debug);
    EXPECT_EQ(levels.of(Artifact::output_code), Level::off);
  }
}

TEST(LogSettings, DynamicFollowsDynamoUnlessNamed) {
  EXPECT_EQ(parse_logs("+dynamo").of(Component::dynamic), Level::debug);
  EXPECT_EQ(parse_logs("+dynamic,dynamo").of(Component::dynamic), Level::debug);
}

TEST(LogSettings, BlanksAroundNamesAreAllowedAndTheLastMentionCounts) {
  const LogLevels levels = parse_logs(" dynamo , +dynamo,  aot ");
  EXPECT_EQ(levels.of(Component::dynamo), Level::debug);
  EXPECT_EQ(levels.of(Component::aot), Level::info);
}

TEST(LogSettings, ModuleNamesOfStockMeanTheComponent) {
  EXPECT_EQ(parse_logs("+torch._dynamo").of(Component::dynamo), Level::debug);
  EXPECT_EQ(parse_logs("torch._inductor.scheduler").of(Component::inductor), Level::info);
  EXPECT_EQ(parse_logs("torch._dynamo_other").of(Component::dynamo), Level::warning);
}

TEST(LogSettings, NamesThatOnlyStockHasAreKeptAsIgnored) {
  const LogLevels levels = parse_logs("+dynamo,cudagraphs,some.module");
  EXPECT_EQ(levels.ignored, (std::vector<std::string>{"cudagraphs", "some.module"}));
}

TEST(LogSettings, ArtifactsThatNothingEmitsAreKept) {
  const LogLevels levels = parse_logs("trace_call,-verbose_guards,graph_code,+dynamo");
  EXPECT_EQ(levels.not_emitted, std::vector<std::string>{"trace_call"});
}

TEST(LogSettings, UnknownNamesAreRefusedWithTheNearestOnes) {
  const std::string message = refusal("dynamo,graph_brakes");
  EXPECT_TRUE(contains(message, "TORCH_LOGS: unknown name \"graph_brakes\"")) << message;
  EXPECT_TRUE(contains(message, "did you mean \"graph_breaks\"")) << message;
  EXPECT_TRUE(contains(refusal("inducter"), "\"inductor\""));
  EXPECT_TRUE(contains(refusal("recomp"), "\"recompiles\""));
  EXPECT_TRUE(contains(refusal("zzzzzzzz"), "unknown name \"zzzzzzzz\". TORCH_LOGS=help"));
}

TEST(LogSettings, BadGrammarIsRefusedWithThePartAtFault) {
  for (const std::string text :
       {",", "dynamo,,aot", "dynamo,", "++dynamo", "dyn amo", "+", "a=b"}) {
    const std::string message = refusal(text);
    EXPECT_TRUE(contains(message, "TORCH_LOGS: cannot read \"")) << message;
    EXPECT_TRUE(contains(message, "in \"" + text + "\"")) << message;
  }
}

TEST(LogSettings, HelpIsTheTableAndMustStandAlone) {
  for (const std::string text : {"help", "+help"}) {
    try {
      parse_logs(text);
      FAIL() << "help must not parse as a setting";
    } catch (const HelpRequested& help) {
      for (const LogName& row : log_names) EXPECT_TRUE(contains(help.what(), row.description));
    }
  }
  EXPECT_TRUE(contains(refusal("help,dynamo"), "\"help\" must stand alone"));
}

}  // namespace
}  // namespace assay::observe
