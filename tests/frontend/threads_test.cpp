// Calls from several threads at once. Also run under ThreadSanitizer (make tsan-test).
#include <ATen/ops/allclose.h>
#include <ATen/ops/relu.h>

#include <atomic>
#include <thread>

#include "assay/compile.h"
#include "assay/error.h"
#include "support.h"

namespace assay {

namespace {

constexpr int kThreads = 8;

template <typename Work>
void on_threads(const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

at::Tensor program(const at::Tensor& x) { return (at::relu(x) * 2 + x.sin()).sum(); }

// How many of the calls gave something else than eager.
template <typename Compiled, typename IsSame>
int wrong_calls(const Compiled& compiled, const IsSame& is_same) {
  std::atomic<int> wrong = 0;
  on_threads([&](int thread) {
    for (int round = 0; round < 10; ++round) {
      const at::Tensor x = leaf({1 + (thread + round) % kThreads, 2});
      const at::Tensor y = x.detach().clone().requires_grad_();
      const at::Tensor found = compiled(x);
      const at::Tensor expected = program(y);
      found.backward();
      expected.backward();
      if (!is_same(found, expected) || !is_same(x.grad(), y.grad())) ++wrong;
    }
  });
  return wrong;
}

}  // namespace

TEST(Threads, DifferentShapesAtOnce) {
  const auto compiled = assay::compile(&program, {.backend = "aot_eager"});
  EXPECT_EQ(wrong_calls(compiled, [](const auto& x, const auto& y) { return at::equal(x, y); }), 0);
  EXPECT_EQ(compiled.compilations(), 8u);
}

TEST(Threads, KernelsOfDifferentShapesAtOnce) {
  const auto compiled = assay::compile(&program, {.backend = "native"});
  EXPECT_EQ(wrong_calls(compiled, [](const auto& x, const auto& y) { return at::allclose(x, y); }),
            0);
  EXPECT_EQ(compiled.compilations(), 8u);
}

TEST(Threads, OneShapeIsCompiledOnce) {
  const auto compiled = assay::compile(&program);
  on_threads([&](int) { compiled(numbers({3})); });
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Threads, BeyondTheLimitAndRefused) {
  const auto limited = assay::compile(&program, {.backend = "aot_eager", .cache_limit = 2});
  const auto refused = assay::compile(
      [](const at::Tensor& x) { return x * x.sum().item<double>(); }, {.fallback = true});
  std::atomic<int> wrong = 0;
  on_threads([&](int thread) {
    const at::Tensor x = numbers({1 + thread % 4});
    if (!at::equal(limited(x), program(x))) ++wrong;
    if (!at::equal(refused(x), x * x.sum().item<double>())) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(limited.compilations(), 2u);
}

TEST(Threads, OthersRunEagerlyWhileOneCompiles) {
  std::atomic<bool> is_done = false;
  std::atomic<int> wrong = 0;
  std::thread eager([&] {
    while (!is_done) {
      const at::Tensor x = leaf({3});
      const at::Tensor result = program(x);
      result.backward();
      if (x.grad().size(0) != 3 || !result.item().isFloatingPoint()) ++wrong;
    }
  });
  for (std::int64_t size = 1; size <= 8; ++size) {
    const auto compiled = assay::compile(&program);
    const at::Tensor x = leaf({size});
    compiled(x).backward();
    EXPECT_EQ(compiled.compilations(), 1u);
  }
  is_done = true;
  eager.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace assay
