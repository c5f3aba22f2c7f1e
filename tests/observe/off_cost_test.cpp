// What the stream costs while nobody listens: no message is made and nothing is allocated.
#include "count_allocations.h"
#include "observe/log_names.h"
#include "observe_fixture.h"

namespace assay::observe {
namespace {

using OffCost = ObserveTest;

TEST_F(OffCost, NothingIsFormattedAndNothingAllocated) {
  const std::string long_name(100, 'n');
  int calls = 0;
  const long before = allocations_of_this_thread();
  for (const Level level : {Level::debug, Level::info}) {
    log(Component::dynamo, level, [&] { return std::to_string(++calls) + long_name; });
    log(Component::dynamo, level, long_name);
    event(Kind::pass, Component::pass_manager, level, [&](Event&) { ++calls; });
    artifact(Artifact::graph_code, [&] { return std::to_string(++calls); });
    Phase phase(long_name);
    phase.field("name", long_name);
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
  EXPECT_EQ(calls, 0);
}

TEST_F(OffCost, TheGateBeforeConfigurationIsThatOfTheDefaults) {
  const LogLevels defaults;
  for (const LogName& row : log_names) {
    const auto expected = row.off_by_default ? Level::off : Level::warning;
    EXPECT_EQ(defaults.of(row.channel), expected) << row.name;
    EXPECT_EQ(wants(row.channel, Level::warning), !row.off_by_default) << row.name;
    EXPECT_FALSE(wants(row.channel, Level::info)) << row.name;
  }
}

}  // namespace
}  // namespace assay::observe
