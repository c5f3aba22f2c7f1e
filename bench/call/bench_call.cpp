// The cost of one call from C++: `x + 1` on one element, bare and through assay::compile, in turns.
// Prints JSON: the fastest round of each, in nanoseconds per call.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "assay/compile.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 60;
constexpr int kCalls = 5000;

struct Work {
  std::string name;
  std::function<void()> round;
  double best = std::numeric_limits<double>::infinity();
};

template <typename Function>
Work work(std::string name, Function function, const at::Tensor& x) {
  return {std::move(name), [function, x] {
            for (int i = 0; i < kCalls; ++i) function(x);
          }};
}

}  // namespace

int main() {
  const c10::AutoGradMode no_grad(false);
  const at::Tensor x = at::ones({1});
  const auto add = [](const at::Tensor& input) { return input + 1; };
  std::vector<Work> works;
  works.push_back(work("bare", add, x));
  works.push_back(work("eager", assay::compile(add, {.backend = "eager"}), x));
  works.push_back(work("aot_eager", assay::compile(add, {.backend = "aot_eager"}), x));
  for (int round = 0; round < kRounds; ++round) {
    for (Work& each : works) {
      const auto begin = Clock::now();
      each.round();
      const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
      each.best = std::min(each.best, took.count() / kCalls);
    }
  }
  std::printf("{");
  for (std::size_t i = 0; i < works.size(); ++i) {
    std::printf("%s\"%s\": %.1f", i == 0 ? "" : ", ", works[i].name.c_str(), works[i].best);
  }
  std::printf("}\n");
  return 0;
}
