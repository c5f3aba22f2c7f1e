// Settings are the process's: every thread sees them, and patches of several threads do not
// disturb each other's end. Run by `make tsan-test` too.
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "config_fixture.h"
#include "observe/observe.h"

namespace assay::config {
namespace {

TEST(ConfigThreads, AllSeeAPatch) {
  const PatchScope scope({assign<"repro_after">("dynamo")});
  std::thread([] { EXPECT_EQ(get<"repro_after">(), "dynamo"); }).join();
}

TEST(ConfigThreads, PatchesThatOverlapLeaveNothingBehind) {
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      const std::string& root = get<"debug_dir_root">();
      const std::int64_t level = get<"repro_level">();
      if ((root != "torch_compile_debug" && !root.starts_with("/thread")) || level < 1 ||
          level > 4) {
        ADD_FAILURE() << root << " " << level;
      }
    }
  });
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (int i = 0; i < 500; ++i) {
        const PatchScope scope({assign<"repro_level">(1 + (thread + i) % 4),
                                assign<"debug_dir_root">("/thread" + std::to_string(thread))});
        if (i % 100 == 0) reload_environment();
        EXPECT_TRUE(get<"debug_dir_root">().starts_with("/thread"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  reader.join();
  EXPECT_EQ(get<"repro_level">(), 2);
  EXPECT_EQ(get<"debug_dir_root">(), "torch_compile_debug");
}

TEST(ConfigThreads, WhatIsPushedLastIsWhatIsSet) {
  std::barrier rounds(3);
  std::atomic<bool> stop = false;
  const auto setter = [&](const char* value) {
    while (true) {
      rounds.arrive_and_wait();
      if (stop) return;
      set<"logs">(value);
      rounds.arrive_and_wait();
    }
  };
  std::thread first(setter, "+aot");
  std::thread second(setter, "");
  for (int round = 0; round < 2000; ++round) {
    rounds.arrive_and_wait();
    rounds.arrive_and_wait();
    const bool is_logged = observe::wants(observe::Component::aot, observe::Level::debug);
    EXPECT_EQ(is_logged, get<"logs">() == "+aot");
  }
  stop = true;
  rounds.arrive_and_wait();
  first.join();
  second.join();
  unset<"logs">();
}

}  // namespace
}  // namespace assay::config
