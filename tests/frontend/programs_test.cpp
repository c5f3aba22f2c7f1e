// What compiled programs compute is what they compute eagerly, and so is what they leave behind.
#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <stdexcept>

#include "assay/compile.h"
#include "assay/error.h"
#include "support.h"

namespace assay {

TEST(Programs, KindsOfCallablesAndResults) {
  const at::Tensor x = numbers({2, 3});
  const auto tuple = assay::compile([](at::Tensor a, const at::Tensor& b) {
    return std::tuple<at::Tensor, at::Tensor>(a + b, a - b);
  });
  const auto [sum, difference] = tuple(x, x.clone());
  expect_same(sum, x + x);
  expect_same(difference, x - x);
  const auto move_only = assay::compile(
      [scale = std::make_unique<double>(3)](const at::Tensor& a) { return a * *scale; });
  expect_same(move_only(x), x * 3.0);
  struct Doubler {
    at::Tensor operator()(const at::Tensor& a) { return a * 2; }
  };
  expect_same(assay::compile(Doubler())(x), x * 2);
  const auto vector = assay::compile([](std::vector<at::Tensor> in) {
    return std::vector<at::Tensor>{at::relu(in[0]), in[0].sum()};
  });
  expect_same(vector({x})[1], x.sum());
  const auto nothing_in = assay::compile([] { return at::full({2}, 4.0); });
  expect_same(nothing_in(), at::full({2}, 4.0));
  const auto nothing_out = assay::compile([](const at::Tensor& a) {
    a.add_(1);
    return std::vector<at::Tensor>();
  });
  EXPECT_TRUE(nothing_out(x).empty());
  expect_same(x, numbers({2, 3}) + 1);
}

TEST(Programs, NumberOfResultsMayChange) {
  const auto compiled = assay::compile([](const at::Tensor& x, int count) {
    std::vector<at::Tensor> results;
    for (int i = 0; i < count; ++i) results.push_back(x * i);
    return results;
  });
  EXPECT_EQ(compiled(numbers({2}), 2).size(), 2u);
  EXPECT_EQ(compiled(numbers({2}), 3).size(), 3u);
  EXPECT_EQ(compiled(numbers({2}), 2).size(), 2u);
  EXPECT_EQ(compiled.compilations(), 2u);
}

TEST(Programs, TheTextOfGraphsIsReadable) {
  const auto compiled = assay::compile([](const at::Tensor& x) { return at::relu(x) + 1; });
  EXPECT_TRUE(compiled.graphs().empty());
  compiled(numbers({2}));
  ASSERT_EQ(compiled.graphs().size(), 1u);
  EXPECT_NE(compiled.graphs()[0].find("torch.ops.aten.relu.default"), std::string::npos)
      << compiled.graphs()[0];
}

TEST(Programs, InPlaceOnInputs) {
  const auto program = [](const at::Tensor& x, const at::Tensor& y) {
    x.mul_(2);
    x.select(0, 0).add_(y);
    return x + 1;
  };
  const auto compiled = assay::compile(program);
  for (int round = 0; round < 2; ++round) {
    const at::Tensor x = numbers({2, 3});
    const at::Tensor expected_x = numbers({2, 3});
    const at::Tensor y = numbers({3});
    expect_same(compiled(x, y), program(expected_x, y));
    expect_same(x, expected_x);
  }
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Programs, ReturnedViewsAreViewsOfTheInput) {
  const auto compiled = assay::compile([](const at::Tensor& x) {
    return std::vector<at::Tensor>{x.t(), x.select(0, 1), x};
  });
  for (int round = 0; round < 2; ++round) {
    const at::Tensor x = numbers({2, 3});
    const auto results = compiled(x);
    expect_same(results[0], x.t());
    for (const at::Tensor& result : results) EXPECT_TRUE(result.is_alias_of(x));
    EXPECT_TRUE(results[2].is_same(x));
    results[1].zero_();
    EXPECT_EQ(x[1].sum().item<float>(), 0);
  }
}

TEST(Programs, ConstantsAreNewInEachCall) {
  const auto program = [](const at::Tensor& x) {
    const at::Tensor steps = at::tensor({1.0F, 2.0F, 3.0F});
    steps.add_(x);
    return steps;
  };
  const auto compiled = assay::compile(program);
  for (int round = 0; round < 3; ++round) {
    const at::Tensor x = numbers({3}) * round;
    const at::Tensor result = compiled(x);
    expect_same(result, program(x));
    result.fill_(7);
  }
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Programs, RandomNumbersAreThoseOfEager) {
  const auto program = [](const at::Tensor& x) { return x * at::rand({3}) + at::rand({3}); };
  const auto compiled = assay::compile(program);
  at::manual_seed(7);
  const std::vector<at::Tensor> expected = {program(numbers({3})), program(numbers({3}))};
  const at::Tensor after = at::rand({3});
  at::manual_seed(7);
  for (const at::Tensor& tensor : expected) expect_same(compiled(numbers({3})), tensor);
  expect_same(at::rand({3}), after);
}

TEST(Programs, CapturedTensorsAreReadAndWritten) {
  const at::Tensor state = at::zeros({2});
  const auto compiled = assay::compile([&](const at::Tensor& x) {
    state.add_(x);
    return state * 2;
  });
  const at::Tensor x = numbers({2});
  expect_same(compiled(x), x * 2);
  expect_same(state, x);
  state.fill_(1);
  expect_same(compiled(x), (x + 1) * 2);
  expect_same(state, x + 1);
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Programs, AnExceptionMidwayChangesNothing) {
  const at::Tensor state = at::zeros({2});
  bool fails = true;
  const auto compiled = assay::compile([&](const at::Tensor& x) {
    x.add_(1);
    state.add_(x);
    at::rand({2});
    if (fails) throw std::out_of_range("not now");
    return x + state;
  });
  const at::Tensor x = numbers({2});
  at::manual_seed(3);
  EXPECT_THROW(compiled(x), std::out_of_range);
  const at::Tensor drawn = at::rand({2});
  at::manual_seed(3);
  expect_same(drawn, at::rand({2}));
  expect_same(x, numbers({2}));
  expect_same(state, at::zeros({2}));
  EXPECT_EQ(compiled.compilations(), 0u);
  EXPECT_FALSE(c10::impl::tls_local_dispatch_key_set().included_.has(
      c10::DispatchKey::TESTING_ONLY_GenericMode));
  fails = false;
  expect_same(compiled(x), (numbers({2}) + 1) * 2);
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Programs, AnErrorOfAnOperatorIsTheProgramsOwn) {
  const auto compiled =
      assay::compile([](const at::Tensor& x, const at::Tensor& y) { return x + y; });
  EXPECT_THROW(compiled(numbers({2}), numbers({3})), c10::Error);
  expect_same(compiled(numbers({2}), numbers({2})), numbers({2}) * 2);
}

TEST(Programs, ACompiledFunctionInsideAnotherIsPartOfItsGraph) {
  const auto inner = assay::compile([](const at::Tensor& x) { return at::relu(x) * 2; });
  const auto outer = assay::compile([=](const at::Tensor& x) { return inner(x + 1) + inner(x); });
  for (int round = 0; round < 2; ++round) {
    const at::Tensor x = leaf({3});
    const at::Tensor y = leaf({3});
    expect_same(outer(x), at::relu(y + 1) * 2 + at::relu(y) * 2);
    outer(x).sum().backward();
    expect_same(x.grad(), at::full({3}, 4.0));
  }
  EXPECT_EQ(outer.compilations(), 1u);
  EXPECT_EQ(inner.compilations(), 0u);
  expect_same(inner(numbers({3})), numbers({3}) * 2);
  EXPECT_EQ(inner.compilations(), 1u);
}

TEST(Programs, AFunctionMayCallItself) {
  std::function<at::Tensor(const at::Tensor&, int)> self;
  const auto compiled = assay::compile(
      [&](const at::Tensor& x, int depth) { return depth == 0 ? x + 1 : self(x * 2, depth - 1); });
  self = compiled;
  expect_same(compiled(numbers({2}), 3), numbers({2}) * 8 + 1);
  EXPECT_EQ(compiled.compilations(), 1u);
}

}  // namespace assay
