// When a compiled function is compiled again, and when not.
#include <ATen/autocast_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <cmath>

#include "assay/compile.h"
#include "support.h"

namespace assay {

namespace {

at::Tensor double_it(const at::Tensor& x) { return x * 2 + 1; }

// Calls with both arguments, twice; the second is another case than the first.
void expect_two_cases(const at::Tensor& first, const at::Tensor& second) {
  const auto compiled = assay::compile(&double_it);
  for (int round = 0; round < 2; ++round) {
    expect_same(compiled(first), double_it(first));
    expect_same(compiled(second), double_it(second));
  }
  EXPECT_EQ(compiled.compilations(), 2u);
  EXPECT_EQ(compiled.graphs().size(), 2u);
}

}  // namespace

TEST(Guards, TheSameAgainIsNotCompiledAgain) {
  const auto compiled = assay::compile(&double_it);
  EXPECT_EQ(compiled.compilations(), 0u);
  for (int i = 0; i < 5; ++i) {
    const at::Tensor x = numbers({2, 3}) + i;  // other values, the same properties
    expect_same(compiled(x), double_it(x));
  }
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Guards, Dtype) { expect_two_cases(numbers({2, 3}), numbers({2, 3}, at::kDouble)); }
TEST(Guards, Rank) { expect_two_cases(numbers({6}), numbers({6, 1})); }
TEST(Guards, Sizes) { expect_two_cases(numbers({2, 3}), numbers({3, 2})); }
TEST(Guards, SizesOfNothing) { expect_two_cases(numbers({2, 3}), numbers({2, 0})); }
TEST(Guards, Strides) { expect_two_cases(numbers({3, 3}), numbers({3, 3}).t()); }
TEST(Guards, RequiresGrad) { expect_two_cases(numbers({2}), leaf({2})); }

TEST(Guards, NumbersByValue) {
  const auto scale = [](const at::Tensor& x, double a, std::int64_t b, int c, bool d) {
    return d ? x * a + b : x - c;
  };
  const auto compiled = assay::compile(scale);
  const at::Tensor x = numbers({3});
  const auto check = [&](double a, std::int64_t b, int c, bool d, std::size_t compilations) {
    expect_same(compiled(x, a, b, c, d), scale(x, a, b, c, d));
    EXPECT_EQ(compiled.compilations(), compilations);
  };
  check(1.5, 2, 3, true, 1);
  check(2.5, 2, 3, true, 2);
  check(2.5, 7, 3, true, 3);
  check(2.5, 7, 4, true, 4);
  check(2.5, 7, 4, false, 5);
  check(1.5, 2, 3, true, 5);
}

TEST(Guards, NanIsTheSameNumberAsNanAndMinusZeroIsAnother) {
  const auto compiled = assay::compile([](const at::Tensor& x, double a) { return x * a; });
  const at::Tensor x = numbers({2});
  compiled(x, std::nan(""));
  compiled(x, std::nan(""));
  EXPECT_EQ(compiled.compilations(), 1u);
  compiled(x, 0.0);
  EXPECT_TRUE(std::signbit(compiled(x, -0.0)[0].item<float>()));
  EXPECT_EQ(compiled.compilations(), 3u);
}

TEST(Guards, LengthOfAVector) {
  const auto sum = [](const std::vector<at::Tensor>& all) {
    at::Tensor total = all[0];
    for (std::size_t i = 1; i < all.size(); ++i) total = total + all[i];
    return total;
  };
  const auto compiled = assay::compile(sum);
  const at::Tensor x = numbers({2});
  const at::Tensor y = numbers({2}) * 3;
  expect_same(compiled({x, y}), x + y);
  expect_same(compiled({x, y, y * 2}), x + y + y * 2);
  expect_same(compiled({y, x}), y + x);
  EXPECT_EQ(compiled.compilations(), 2u);
}

TEST(Guards, TensorsDividedOtherwiseAmongVectors) {
  const auto program = [](std::vector<at::Tensor> a, int scale, std::vector<at::Tensor> b) {
    std::vector<at::Tensor> results;
    for (const at::Tensor& x : a) results.push_back(x * scale);
    for (const at::Tensor& x : b) results.push_back(x + scale);
    return results;
  };
  const auto compiled = assay::compile(program);
  const at::Tensor x = numbers({2});
  const at::Tensor y = numbers({2}) * 3;
  const at::Tensor z = numbers({2}) * 5;
  for (int round = 0; round < 2; ++round) {
    const auto first = compiled({x, y}, 3, {z});
    const auto second = compiled({x}, 3, {y, z});
    const auto third = compiled({}, 3, {x, y, z});
    expect_same(first[1], y * 3);
    expect_same(second[1], y + 3);
    expect_same(third[0], x + 3);
  }
  EXPECT_EQ(compiled.compilations(), 3u);
}

TEST(Guards, SharingOfMemory) {
  const auto program = [](const at::Tensor& x, const at::Tensor& y) {
    x.add_(1);
    return x + y;
  };
  const auto compiled = assay::compile(program);
  for (int round = 0; round < 2; ++round) {
    const at::Tensor a = numbers({3});
    const at::Tensor b = numbers({3});
    expect_same(compiled(a, b), numbers({3}) * 2 + 1);
    expect_same(compiled(a, a), (numbers({3}) + 2) * 2);
  }
  EXPECT_EQ(compiled.compilations(), 2u);
}

TEST(Guards, GradMode) {
  const auto compiled = assay::compile(&double_it);
  const at::Tensor x = leaf({2});
  EXPECT_TRUE(compiled(x).requires_grad());
  {
    const c10::NoGradGuard no_grad;
    EXPECT_FALSE(compiled(x).requires_grad());
    EXPECT_FALSE(compiled(x).requires_grad());
  }
  EXPECT_TRUE(compiled(x).requires_grad());
  EXPECT_EQ(compiled.compilations(), 2u);
}

TEST(Guards, InferenceMode) {
  const auto compiled = assay::compile(&double_it);
  const at::Tensor x = leaf({2});
  EXPECT_TRUE(compiled(x).requires_grad());
  for (int round = 0; round < 2; ++round) {
    const c10::InferenceMode inference;
    const at::Tensor result = compiled(x);
    EXPECT_FALSE(result.requires_grad());
    EXPECT_TRUE(at::equal(result, double_it(x)));
    EXPECT_TRUE(result.is_inference());
  }
  EXPECT_EQ(compiled.compilations(), 2u);
  EXPECT_TRUE(compiled(x).requires_grad());
}

TEST(Guards, Autocast) {
  const auto product = [](const at::Tensor& x, const at::Tensor& y) { return at::matmul(x, y); };
  const auto compiled = assay::compile(product);
  const at::Tensor x = numbers({3, 3});
  EXPECT_EQ(compiled(x, x.clone()).scalar_type(), at::kFloat);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  for (int round = 0; round < 2; ++round) {
    expect_same(compiled(x, x.clone()), product(x, x));
    EXPECT_EQ(compiled(x, x.clone()).scalar_type(), at::kBFloat16);
  }
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_EQ(compiled(x, x.clone()).scalar_type(), at::kFloat);
  EXPECT_EQ(compiled.compilations(), 2u);
}

TEST(Guards, AutocastCache) {
  // Whether a leaf is cast once or twice decides how its gradients are summed.
  const auto twice = [](const at::Tensor& x, const at::Tensor& y) {
    return at::matmul(x, y) + at::matmul(y, x);
  };
  const auto compiled = assay::compile(twice);
  const at::Tensor x = numbers({3, 3});
  at::autocast::set_autocast_enabled(at::kCPU, true);
  expect_same(compiled(x, x.clone()), twice(x, x));
  at::autocast::set_autocast_cache_enabled(false);
  for (int round = 0; round < 2; ++round) expect_same(compiled(x, x.clone()), twice(x, x));
  at::autocast::set_autocast_cache_enabled(true);
  expect_same(compiled(x, x.clone()), twice(x, x));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_EQ(compiled.compilations(), 2u);
}

TEST(Guards, DefaultDtype) {
  const auto compiled = assay::compile([](const at::Tensor& x) { return at::ones({2}) + x; });
  const at::Tensor x = numbers({2}).to(at::kInt);
  EXPECT_EQ(compiled(x).scalar_type(), at::kFloat);
  const auto before = c10::get_default_dtype();
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kDouble));
  const at::Tensor result = compiled(x);
  c10::set_default_dtype(before);
  EXPECT_EQ(result.scalar_type(), at::kDouble);
  EXPECT_EQ(compiled(x).scalar_type(), at::kFloat);
  EXPECT_EQ(compiled.compilations(), 2u);
}

TEST(Guards, BeyondTheLimitCallsRunEagerlyWithOneWarning) {
  const Warnings warnings;
  const auto compiled = assay::compile(&double_it, {.cache_limit = 2, .name = "double_it"});
  for (std::int64_t size = 1; size <= 5; ++size) {
    const at::Tensor x = numbers({size});
    expect_same(compiled(x), double_it(x));
  }
  EXPECT_EQ(compiled.compilations(), 2u);
  ASSERT_EQ(warnings.texts().size(), 1u);
  EXPECT_NE(warnings.texts()[0].find("double_it"), std::string::npos);
  EXPECT_NE(warnings.texts()[0].find("size [2] before, [3] now"), std::string::npos)
      << warnings.texts()[0];
}

TEST(Guards, CopiesShareTheGraphs) {
  const auto compiled = assay::compile(&double_it);
  const auto copy = compiled;
  copy(numbers({2}));
  compiled(numbers({2}));
  EXPECT_EQ(compiled.compilations(), 1u);
  EXPECT_EQ(copy.compilations(), 1u);
}

}  // namespace assay
