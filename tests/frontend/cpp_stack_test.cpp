// The message about a call that is refused says where in the user's program it stands.
#include "frontend/cpp_stack.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <string>

#include "assay/error.h"
// After the room's header: `compile` is then both a namespace and a function.
#include "assay/compile.h"

namespace assay {

namespace {

__attribute__((noinline)) at::Tensor scaled_by_its_sum(const at::Tensor& x) {
  const double sum = x.sum().item<double>();
  return x * sum;
}
constexpr int kLine = __LINE__ - 3;

std::string refusal() {
  const auto compiled = compile([](const at::Tensor& x) {
    const at::Tensor scaled = scaled_by_its_sum(x);
    return scaled + 1;
  });
  try {
    compiled(at::ones({2}));
  } catch (const TraceError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST(CppStack, TheRefusalNamesFunctionFileAndLine) {
  const std::string message = refusal();
  const std::string inner = "scaled_by_its_sum(at::Tensor const&) at ";
  const std::string place = "cpp_stack_test.cpp:" + std::to_string(kLine);
  EXPECT_NE(message.find(inner), std::string::npos) << message;
  EXPECT_NE(message.find(place), std::string::npos) << message;
  EXPECT_NE(message.find("refusal()::{lambda"), std::string::npos) << message;
  // Neither our frames nor those of whoever called the compiled function.
  for (const char* other : {"assay::detail::", "std::", "RUN_ALL_TESTS", "testing::", "main at"}) {
    EXPECT_EQ(message.find(std::string("in ") + other), std::string::npos) << message;
  }
}

TEST(CppStack, WithoutAddr2lineTheOffsetIsSaid) {
  const std::string path = ::getenv("PATH") == nullptr ? "" : ::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  const std::string message = refusal();
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_NE(message.find("frontend_test+0x"), std::string::npos) << message;
}

TEST(CppStack, NamesWithoutReturnTypes) {
  using frontend::function_name;
  EXPECT_EQ(function_name("f(int)"), "f(int)");
  EXPECT_EQ(function_name("at::Tensor user::f<int>(at::Tensor const&)"),
            "user::f<int>(at::Tensor const&)");
  EXPECT_EQ(function_name("std::vector<a, b > g<1>(int, int)"), "g<1>(int, int)");
  EXPECT_EQ(function_name("(anonymous namespace)::f(int) const"), "(anonymous namespace)::f(int)");
  EXPECT_EQ(function_name("h(int) [clone .cold]"), "h(int)");
}

}  // namespace assay
