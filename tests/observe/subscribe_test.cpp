// Subscribers: what they are given, when they stop, what they may do.
#include "observe/subscribe.h"

#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "observe_fixture.h"

namespace assay::observe {
namespace {

using Subscribers = ObserveTest;

TEST_F(Subscribers, GetEveryEventWithAllItsParts) {
  std::vector<Event> events;
  const auto subscription = subscribe([&](const Event& event) { events.push_back(event); });
  const std::uint_least32_t line = SourceLocation::current().line() + 1;
  log(Component::reduce, Level::debug, [] { return "step"; });
  {
    Phase phase("parse", Component::parse);
    phase.field("bytes", std::size_t{7});
  }
  event(Kind::recompile, Artifact::recompiles, Level::debug, [](Event& again) {
    again.name = "f";
    again.field("guard", "x.size(0) == 3");
  });
  artifact(Artifact::output_code, [] { return "code"; });

  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].kind, Kind::message);
  EXPECT_EQ(events[0].channel, Channel(Component::reduce));
  EXPECT_EQ(events[0].message, "step");
  EXPECT_EQ(events[0].location.line(), line);
  EXPECT_EQ(events[0].process, ::getpid());
  EXPECT_EQ(events[0].thread, ::gettid());
  EXPECT_GT(events[0].wall_nanoseconds, 1'700'000'000'000'000'000);
  EXPECT_EQ(events[1].kind, Kind::phase_begin);
  EXPECT_EQ(events[2].kind, Kind::phase_end);
  EXPECT_EQ(events[2].duration_nanoseconds,
            events[2].monotonic_nanoseconds - events[1].monotonic_nanoseconds);
  ASSERT_NE(events[2].find_field("bytes"), nullptr);
  EXPECT_EQ(std::get<std::int64_t>(*events[2].find_field("bytes")), 7);
  EXPECT_EQ(events[3].kind, Kind::recompile);
  EXPECT_EQ(field_text(*events[3].find_field("guard")), "x.size(0) == 3");
  EXPECT_EQ(events[4].kind, Kind::artifact);
}

TEST_F(Subscribers, DoNotMakeTheLogsPrintMore) {
  const auto subscription = subscribe([](const Event&) {});
  EXPECT_EQ(stderr_of([] { log(Component::dynamo, Level::debug, "text"); }), "");
}

TEST_F(Subscribers, OfEventsOnlyMakeNobodyFormatMessages) {
  int count = 0;
  const auto subscription = subscribe([&](const Event&) { ++count; }, Interest::events);
  log(Component::dynamo, Level::debug, []() -> std::string { throw std::logic_error("called"); });
  stderr_of([] { log(Component::dynamo, Level::error, "text"); });
  EXPECT_EQ(count, 0);
  event(Kind::failure, Component::sandbox, Level::debug, [](Event&) {});
  EXPECT_EQ(count, 1);
}

TEST_F(Subscribers, StopAtTheEndOfTheirSubscription) {
  int count = 0;
  Subscription kept;
  {
    auto subscription = subscribe([&](const Event&) { ++count; });
    kept = std::move(subscription);
  }
  log(Component::dynamo, Level::debug, "one");
  kept.reset();
  log(Component::dynamo, Level::debug, "two");
  EXPECT_EQ(count, 1);
  EXPECT_FALSE(wants(Component::dynamo, Level::debug));
}

TEST_F(Subscribers, MayEndThemselvesAndLogFromTheCallback) {
  int count = 0;
  Subscription subscription;
  subscription = subscribe([&](const Event&) {
    ++count;
    log(Component::dynamo, Level::debug, "from the callback");
    subscription.reset();
  });
  log(Component::dynamo, Level::debug, "one");
  log(Component::dynamo, Level::debug, "two");
  EXPECT_EQ(count, 1);
}

TEST_F(Subscribers, ThatThrowAreReportedAndTheOthersStillCalled) {
  int count = 0;
  const auto bad = subscribe([](const Event&) { throw std::runtime_error("my bug"); });
  const auto good = subscribe([&](const Event&) { ++count; });
  const auto text = stderr_of([] { log(Component::dynamo, Level::debug, "text"); });
  EXPECT_NE(text.find("[observe] a subscriber of events threw: my bug"), std::string::npos) << text;
  EXPECT_EQ(count, 1);
}

TEST_F(Subscribers, AreNotCalledAfterTheirEndWhileOtherThreadsEmit) {
  std::atomic<bool> done = false;
  std::array<std::thread, 3> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      while (!done) {
        log(Component::aten, Level::debug, "text");
        const Phase phase("run");
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    auto subscription = subscribe([&alive](const Event&) { alive->fetch_add(1); });
    std::this_thread::yield();
    subscription.reset();
    alive.reset();  // a late call would touch freed memory
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dropped_events(), 0);
}

TEST_F(Subscribers, HaveFinishedOnAllThreadsWhenTheirSubscriptionEnds) {
  std::atomic<bool> entered = false;
  std::atomic<bool> left = false;
  auto subscription = subscribe([&](const Event&) {
    entered = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    left = true;
  });
  std::thread other([] { log(Component::aten, Level::debug, "text"); });
  while (!entered) std::this_thread::yield();
  subscription.reset();
  EXPECT_TRUE(left);
  other.join();
}

TEST_F(Subscribers, SurviveAForkFromTheirCallback) {
  pid_t child = -1;
  Subscription subscription;
  subscription = subscribe([&](const Event&) {
    child = ::fork();
    if (child != 0) return;
    log(Component::dynamo, Level::debug, "in the child");
    subscription.reset();
    ::_exit(7);
  });
  log(Component::dynamo, Level::debug, "text");
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST_F(Subscribers, DoNotMakeAForkedChildWaitForThreadsItDoesNotHave) {
  std::atomic<bool> entered = false;
  std::atomic<bool> forked = false;
  auto subscription = subscribe([&](const Event&) {
    entered = true;
    while (!forked) std::this_thread::yield();
  });
  std::thread other([] { log(Component::aten, Level::debug, "text"); });
  while (!entered) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    subscription.reset();
    ::_exit(0);
  }
  forked = true;
  other.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
}

TEST_F(Subscribers, LetAChildEmitThatWasForkedWhileOtherThreadsDid) {
  std::atomic<bool> done = false;
  auto subscription = subscribe([](const Event&) {});
  std::thread other([&] {
    while (!done) log(Component::aten, Level::debug, "text");
  });
  for (int round = 0; round < 50; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // a lock left taken by the other thread would hold the child for ever
      { const Phase phase("in the child"); }
      subscription.reset();
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace assay::observe
