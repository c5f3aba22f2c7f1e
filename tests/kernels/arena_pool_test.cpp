// The memory that compiled programs share.
#include "kernels/arena_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace assay::kernels {
namespace {

constexpr std::size_t kSmall = 1 << 10;
constexpr std::size_t kLarge = 1 << 16;

TEST(ArenaPool, CallsAfterOneAnotherShareTheLargestBlock) {
  const ArenaDemand small(kSmall);
  const ArenaDemand large(kLarge);
  char* first = nullptr;
  {
    const ArenaBlock block(kLarge);
    first = block.data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
  }
  for (const std::size_t bytes : {kSmall, kLarge, kSmall}) {
    const ArenaBlock block(bytes);
    EXPECT_EQ(block.data(), first);
  }
  EXPECT_EQ(idle_arena_bytes(), kLarge);
}

TEST(ArenaPool, ALargerBlockReplacesASmallerOne) {
  const ArenaDemand demand(kLarge);
  { const ArenaBlock block(kSmall); }
  EXPECT_EQ(idle_arena_bytes(), kSmall);
  { const ArenaBlock block(kLarge); }
  EXPECT_EQ(idle_arena_bytes(), kLarge);
}

TEST(ArenaPool, CallsAtTheSameTimeHaveBlocksOfTheirOwn) {
  const ArenaDemand demand(kLarge);
  const ArenaBlock outer(kLarge);
  const ArenaBlock inner(kSmall);
  EXPECT_NE(outer.data(), inner.data());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 200; ++i) {
        const ArenaBlock block(kSmall << (i % 6));
        const char mark = static_cast<char>(t + 1);
        std::fill_n(block.data(), kSmall, mark);
        std::this_thread::yield();
        wrong[t] +=
            static_cast<int>(kSmall - std::count(block.data(), block.data() + kSmall, mark));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(ArenaPool, WhatNoProgramNeedsIsFreed) {
  auto large = std::make_unique<ArenaDemand>(kLarge);
  auto small = std::make_unique<ArenaDemand>(kSmall);
  { const ArenaBlock block(kLarge); }
  large.reset();
  EXPECT_EQ(idle_arena_bytes(), 0U);
  { const ArenaBlock block(kSmall); }
  EXPECT_EQ(idle_arena_bytes(), kSmall);
  small.reset();
  EXPECT_EQ(idle_arena_bytes(), 0U);
}

TEST(ArenaPool, NothingIsTakenForNothing) {
  const ArenaDemand none(0);
  const ArenaBlock block(0);
  EXPECT_EQ(block.data(), nullptr);
  EXPECT_EQ(idle_arena_bytes(), 0U);
}

}  // namespace
}  // namespace assay::kernels
