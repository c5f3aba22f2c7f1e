#include "observe/quiet.h"

#include <memory>

#include "observe/subscribe.h"
#include "observe_fixture.h"

namespace assay::observe {
namespace {

using QuietTest = ObserveTest;

std::vector<std::string> said_while(const std::function<void()>& body) {
  std::vector<std::string> said;
  const auto subscription =
      subscribe([&](const Event& event) { said.push_back(event.name + event.message); });
  body();
  return said;
}

void say(const std::string& text) {
  log(Component::reduce, Level::error, [&] { return text; });
}

TEST_F(QuietTest, NothingIsHeardUntilTheLastHasGone) {
  const auto said = said_while([] {
    say("before");
    auto first = std::make_unique<QuietScope>();
    {
      const QuietScope second;
      say("log");
      artifact(Artifact::aot_graphs, [] { return "graph"; });
      const Phase phase("parse", Component::parse);
    }
    say("still");
    first.reset();
    say("after");
  });
  EXPECT_EQ(said, (std::vector<std::string>{"before", "after"}));
}

TEST_F(QuietTest, APhaseThatBeganBeforeIsHeardToEnd) {
  const auto said = said_while([] {
    auto phase = std::make_unique<Phase>("parse", Component::parse);
    const QuietScope quiet;
    phase.reset();
  });
  EXPECT_EQ(said, (std::vector<std::string>{"parse", "parse"}));
}

TEST_F(QuietTest, WhoeverSubscribesMeanwhileHearsWhatComesAfter) {
  auto quiet = std::make_unique<QuietScope>();
  const auto said = said_while([&] {
    say("during");
    quiet.reset();
    say("after");
  });
  EXPECT_EQ(said, std::vector<std::string>{"after"});
}

}  // namespace
}  // namespace assay::observe
