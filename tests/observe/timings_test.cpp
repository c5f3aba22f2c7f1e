// compile_times() and the phases behind it.
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "observe_fixture.h"

namespace assay::observe {
namespace {

class TimingsTest : public ObserveTest {
 protected:
  void SetUp() override {
    ObserveTest::SetUp();
    Settings settings;
    settings.timings = true;
    configure(settings);
  }

  static void spend(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }
};

TEST_F(TimingsTest, NestedPhasesCountInBothTotalsButOnlyOnceInSelfTime) {
  {
    const Phase compile("compile");
    spend(4);
    for (int count = 0; count < 2; ++count) {
      const Phase verify("verify");
      spend(4);
    }
  }
  const auto rows = phase_timings();
  ASSERT_EQ(rows.size(), 2u);
  const PhaseTiming& compile = rows[0];
  const PhaseTiming& verify = rows[1];
  EXPECT_EQ(compile.name, "compile") << "in the order of their beginning";
  EXPECT_EQ(compile.count, 1);
  EXPECT_EQ(verify.count, 2);
  EXPECT_GE(verify.total_seconds, 0.008);
  EXPECT_GE(compile.total_seconds, 0.012);
  EXPECT_NEAR(compile.self_seconds, compile.total_seconds - verify.total_seconds, 1e-9);
  EXPECT_NEAR(verify.self_seconds, verify.total_seconds, 1e-12);
  EXPECT_LE(verify.shortest_seconds, verify.longest_seconds);
  EXPECT_NEAR(verify.shortest_seconds + verify.longest_seconds, verify.total_seconds, 1e-9);
}

TEST_F(TimingsTest, TheTableListsEveryRuntimeOrTheirSum) {
  for (int count = 0; count < 2; ++count) const Phase phase("parse");
  { const Phase phase("a_long_phase_name"); }
  const auto lines = lines_of(compile_times());
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "Assay compilation metrics:");
  EXPECT_EQ(lines[1], "Function           Runtimes (s)");
  EXPECT_EQ(lines[2], "-----------------  --------------");
  EXPECT_TRUE(lines[3].starts_with("parse              0.0")) << lines[3];
  EXPECT_NE(lines[3].find(", 0."), std::string::npos) << lines[3];
  EXPECT_EQ(lines_of(compile_times(true))[3].find(", "), std::string::npos);
}

TEST_F(TimingsTest, CsvAndJsonHoldTheSameRows) {
  { const Phase phase("odd, \"name\""); }
  const auto csv = lines_of(compile_times_csv());
  ASSERT_EQ(csv.size(), 2u);
  EXPECT_TRUE(csv[1].starts_with("\"odd, \"\"name\"\"\",1,0.0")) << csv[1];
  const auto json = nlohmann::json::parse(compile_times_json());
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["name"], "odd, \"name\"");
  EXPECT_EQ(json[0]["count"], 1);
  EXPECT_EQ(json[0]["runtimes"].size(), 1u);
}

TEST_F(TimingsTest, ManyRunsAreCountedThoughNotAllAreListed) {
  for (std::size_t count = 0; count < most_runtimes + 5; ++count) const Phase phase("run");
  EXPECT_EQ(phase_timings()[0].count, static_cast<std::int64_t>(most_runtimes) + 5);
  EXPECT_TRUE(compile_times().ends_with(", ... (5 more)"));
}

TEST_F(TimingsTest, PhasesOfOtherThreadsAreAddedAndDoNotNestInOurs) {
  {
    const Phase outer("outer");
    std::thread([] { const Phase phase("elsewhere"); }).join();
  }
  const auto rows = phase_timings();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NEAR(rows[0].self_seconds, rows[0].total_seconds, 1e-12);
}

TEST_F(TimingsTest, PhasesMayEndInAnotherOrderThanTheyBegan) {
  auto first = std::make_unique<Phase>("first");
  auto second = std::make_unique<Phase>("second");
  first.reset();
  { const Phase third("third"); }
  second.reset();
  { const Phase fourth("fourth"); }
  EXPECT_EQ(phase_timings().size(), 4u);
}

TEST_F(TimingsTest, NothingIsCollectedUnlessAskedFor) {
  configure(Settings{});
  { const Phase phase("parse"); }
  EXPECT_TRUE(phase_timings().empty());
  EXPECT_EQ(lines_of(compile_times()).size(), 3u);
}

TEST_F(TimingsTest, DynamoAtInfoTellsThemAtExit) {
  configure(Settings{});
  const auto child = [] {
    set_logs("dynamo");
    { const Phase phase("parse"); }
    std::exit(0);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "\\[dynamo\\] parse +0\\.0");
}

}  // namespace
}  // namespace assay::observe
