// Backward through the results of compiled programs.
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <c10/core/GradMode.h>

#include "assay/compile.h"
#include "support.h"

namespace assay {

namespace {

std::vector<at::Tensor> layer(std::vector<at::Tensor> in) {
  const at::Tensor hidden = at::relu(in[0].matmul(in[1]) + in[2]);
  return {at::sigmoid(hidden), hidden * 2};
}

std::vector<at::Tensor> leaves() { return {leaf({4, 3}), leaf({3, 2}), leaf({2})}; }

}  // namespace

TEST(Autograd, GradientsAreThoseOfEager) {
  const auto compiled = assay::compile(&layer);
  for (int round = 0; round < 2; ++round) {
    const auto found = leaves();
    const auto expected = leaves();
    const auto results = compiled(found);
    const auto eager = layer(expected);
    for (std::size_t i = 0; i < 2; ++i) expect_same(results[i], eager[i]);
    (results[0].sum() + results[1].pow(2).sum()).backward();
    (eager[0].sum() + eager[1].pow(2).sum()).backward();
    for (std::size_t i = 0; i < 3; ++i) expect_same(found[i].grad(), expected[i].grad());
  }
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Autograd, OneOfSeveralResultsIsEnough) {
  const auto compiled = assay::compile(&layer);
  const auto found = leaves();
  const auto expected = leaves();
  compiled(found)[0].sum().backward();
  layer(expected)[0].sum().backward();
  for (std::size_t i = 0; i < 3; ++i) expect_same(found[i].grad(), expected[i].grad());
}

TEST(Autograd, GradientsOnlyWhereTheyAreRequired) {
  const auto compiled = assay::compile(&layer);
  const auto found = std::vector<at::Tensor>{numbers({4, 3}), leaf({3, 2}), numbers({2})};
  compiled(found)[1].sum().backward();
  EXPECT_FALSE(found[0].grad().defined());
  EXPECT_TRUE(found[1].grad().defined());
}

TEST(Autograd, ThroughInputsWithAHistory) {
  const auto compiled = assay::compile([](const at::Tensor& x) { return x.pow(3); });
  const at::Tensor x = leaf({3});
  const at::Tensor y = leaf({3});
  (compiled(x * 2) * 3).sum().backward();
  ((y * 2).pow(3) * 3).sum().backward();
  expect_same(x.grad(), y.grad());
}

TEST(Autograd, RetainGraph) {
  const auto compiled = assay::compile([](const at::Tensor& x) { return x.pow(2).sum(); });
  const at::Tensor x = leaf({3});
  const at::Tensor loss = compiled(x);
  loss.backward({}, /*retain_graph=*/true);
  loss.backward();
  expect_same(x.grad(), numbers({3}) * 4);
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(Autograd, Hooks) {
  const auto compiled = assay::compile([](const at::Tensor& x) { return x * 3; });
  const at::Tensor x = leaf({2});
  const at::Tensor result = compiled(x);
  int calls = 0;
  x.register_hook([&](const at::Tensor& gradient) {
    ++calls;
    return gradient * 2;
  });
  result.register_hook([&](const at::Tensor& gradient) {
    ++calls;
    return gradient * 5;
  });
  result.sum().backward();
  EXPECT_EQ(calls, 2);
  expect_same(x.grad(), at::ones({2}) * 30);
}

TEST(Autograd, SecondDerivatives) {
  const auto program = [](const at::Tensor& x) { return (x.pow(3) * x.sin()).sum(); };
  const auto second = [](const auto& function, const at::Tensor& x) {
    function(x).backward({}, /*retain_graph=*/true, /*create_graph=*/true);
    const at::Tensor first = x.grad();
    x.mutable_grad() = at::Tensor();
    first.sum().backward();
    return x.grad();
  };
  const auto compiled = assay::compile(program);
  expect_same(second(compiled, leaf({2})), second(program, leaf({2})));
}

TEST(Autograd, NoGradInsideTheProgram) {
  const auto program = [](const at::Tensor& x) {
    at::Tensor scale;
    {
      const c10::NoGradGuard no_grad;
      scale = x.sum();
    }
    return x * scale;
  };
  const auto compiled = assay::compile(program);
  const at::Tensor x = leaf({3});
  const at::Tensor y = leaf({3});
  compiled(x).sum().backward();
  program(y).sum().backward();
  expect_same(x.grad(), y.grad());
}

TEST(Autograd, InPlaceOnAnInputWithAHistory) {
  const auto program = [](const at::Tensor& x) {
    x.mul_(3);
    return x.pow(2);
  };
  const auto compiled = assay::compile(program);
  const at::Tensor x = leaf({3});
  const at::Tensor y = leaf({3});
  const at::Tensor x2 = x * 2;
  const at::Tensor y2 = y * 2;
  expect_same(compiled(x2), program(y2));
  expect_same(x2, y2);
}

}  // namespace assay
