// Two programs, and what is found about them.
#include "compare/models.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include "assay/error.h"
#include "compare/fp64.h"
#include "compare_fixture.h"

namespace assay::compare {
namespace {

using at::Tensor;
using aten::Value;

std::vector<Value> trained_inputs() {
  return {value(at::randn({4, 3}).set_requires_grad(true)), value(at::randn({3}))};
}

TEST(TwoModels, AgreeWithThemselves) {
  const auto graph = graph_of("x, w", "        relu = torch.relu(x * w)\n        return (relu,)\n");
  for (const bool require_fp64 : {false, true}) {
    const TwoModels found =
        same_two_models(*graph, program(*graph), trained_inputs(), {.require_fp64 = require_fp64});
    EXPECT_TRUE(found.same()) << found.comparison.message;
    EXPECT_EQ(found.has_fp64_reference, require_fp64) << "what is close needs no reference";
  }
}

TEST(TwoModels, AWrongGradientHasTheInputsName) {
  const auto graph = graph_of("x, w", "        mul = x * w\n        return (mul,)\n");
  const auto detached = graph_of(
      "x, w", "        mul = x.detach() * w\n        add = mul + x * 0\n        return (add,)\n");
  const TwoModels found = same_two_models(*graph, program(*detached), trained_inputs());
  EXPECT_FALSE(found.same());
  EXPECT_EQ(found.comparison.where, "gradient['x']");
  EXPECT_TRUE(
      same_two_models(*graph, program(*detached), trained_inputs(), {.only_forward = true}).same());
}

TEST(TwoModels, AnInputThatShouldHaveChanged) {
  const auto graph = graph_of("x", "        add_ = x.add_(1)\n        return (add_ * 2,)\n");
  const auto pure = graph_of("x", "        add = x + 1\n        return (add * 2,)\n");
  const Tensor x = at::zeros({3});
  const TwoModels found = same_two_models(*graph, program(*pure), {value(x)});
  EXPECT_EQ(found.comparison.where, "input['x']");
  EXPECT_TRUE(at::equal(x, at::zeros({3}))) << "the caller's own input was changed";
}

TEST(TwoModels, SeeTheSameRandomNumbers) {
  const auto graph = graph_of(
      "x", "        drop = torch.nn.functional.dropout(x, 0.5, True)\n        return (drop,)\n");
  const std::vector<Value> inputs = {value(at::ones({100}))};
  EXPECT_TRUE(same_two_models(*graph, program(*graph), inputs).same());
  EXPECT_TRUE(same_two_models(*graph, program(*graph), inputs, {.seed = 7}).same());
}

TEST(TwoModels, WhatIsNotCloseIsJudgedInFloat64) {
  // Eager rounds twice. To round once, as fused kernels do, is nearer to the truth and no error.
  const auto graph =
      graph_of("x", "        exp = torch.exp(x)\n        mul = exp * exp\n        return (mul,)\n");
  const Callable precise = [](const std::vector<Value>& values) {
    const Tensor exp = values[0].leaf.toTensor().to(at::kDouble).exp();
    return list({value(exp.mul(exp).to(at::kBFloat16))});
  };
  const std::vector<Value> inputs = {value(at::rand({5000}).to(at::kBFloat16))};
  const TwoModels found = same_two_models(*graph, precise, inputs);
  EXPECT_TRUE(found.same()) << found.comparison.message;
  EXPECT_TRUE(found.has_fp64_reference) << found.fp64_error;
  EXPECT_TRUE(found.comparison.compiled_is_closer);
  EXPECT_FALSE(same_two_models(*graph, precise, inputs, {.use_fp64 = false}).same());
}

TEST(TwoModels, AFailureIsNoWrongNumber) {
  const auto graph = graph_of("x, w", "        mul = x * w\n        return (mul,)\n");
  const Callable broken = [](const std::vector<Value>&) -> Value {
    throw std::runtime_error("no kernel");
  };
  EXPECT_THROW(same_two_models(*graph, broken, trained_inputs()), std::runtime_error);
  const TwoModels found =
      same_two_models(*graph, broken, {value(at::ones({2})), value(at::ones({3}))});
  EXPECT_TRUE(found.eager_failed);
  EXPECT_FALSE(found.same());
  EXPECT_NE(found.eager_error.find("size of tensor"), std::string::npos) << found.eager_error;
}

TEST(TwoModels, AProgramThatDiffersFromItselfIsNoFault) {
  const auto graph = graph_of("x", "        add = x + 1\n        return (add,)\n");
  const std::vector<Value> inputs = {value(at::ones({3}))};
  const Callable wrong = [](const std::vector<Value>& values) {
    return list({value(values[0].leaf.toTensor().mul(100))});
  };
  EXPECT_FALSE(same_two_models(*graph, wrong, inputs).eager_failed);
  // An eager run that gave something else than the next one will.
  const Results eager = collect_results(list({value(at::zeros({3}))}), inputs);
  const TwoModels found = same_two_models(*graph, wrong, inputs, {}, &eager);
  EXPECT_TRUE(found.eager_failed);
  EXPECT_FALSE(found.same());
  EXPECT_NE(found.eager_error.find("not repeatable: two eager runs differ in output[0]"),
            std::string::npos)
      << found.eager_error;
}

TEST(TwoModels, ARunNearerToTheTruthIsNotTheRunBefore) {
  const auto graph = graph_of("x", "        exp = torch.exp(x)\n        return (exp,)\n");
  const std::vector<Value> inputs = {value(at::rand({100}))};
  const Results right = run_fwd_maybe_bwd(program(*graph), inputs);
  EXPECT_EQ(why_not_repeatable(*graph, right, inputs), "");
  const Tensor exp = inputs[0].leaf.toTensor().exp();
  const Results off = collect_results(list({value(exp.mul(1.02))}), inputs);
  const std::string why = why_not_repeatable(*graph, off, inputs);
  EXPECT_TRUE(why.starts_with("not repeatable: two eager runs differ in output[0]: ")) << why;
}

TEST(TwoModels, WithoutAFloat64Reference) {
  // The bits of a float32 cannot be taken from a float64.
  const auto graph = graph_of("x",
                              "        bits = x.view(torch.int32)\n"
                              "        add = bits.view(torch.float32) + torch.zeros_like(x)\n"
                              "        mm = torch.mm(add, torch.ones(3, 3, dtype=torch.float32))\n"
                              "        return (mm,)\n");
  const std::vector<Value> inputs = {value(at::randn({3, 3}))};
  const Callable wrong = [](const std::vector<Value>& values) {
    return list({value(values[0].leaf.toTensor().neg())});
  };
  const TwoModels found = same_two_models(*graph, wrong, inputs);
  EXPECT_FALSE(found.same());
  EXPECT_FALSE(found.has_fp64_reference);
  EXPECT_FALSE(found.fp64_error.empty());
  EXPECT_THROW(same_two_models(*graph, program(*graph), inputs, {.require_fp64 = true}), UserError);
}

TEST(Fp64, CallsThatAskForADtypeAskForFloat64) {
  const auto graph = graph_of("x",
                              "        half = x.half()\n"
                              "        to = half.to(torch.bfloat16)\n"
                              "        ones = torch.ones(3, dtype=torch.float32)\n"
                              "        zeros = torch.zeros(3)\n"
                              "        int_1 = x.to(torch.int32)\n"
                              "        return (half, to, ones, zeros, int_1)\n");
  const Fp64Program cast = cast_to_fp64(*graph, {value(at::ones({3}))});
  const std::vector<Value> results = aten::unpack(program(*cast.graph)(cast.inputs));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(results[i].leaf.toTensor().scalar_type(), at::kDouble);
  EXPECT_EQ(results[4].leaf.toTensor().scalar_type(), at::kInt);
}

TEST(Fp64, RandomNumbersAreTheSame) {
  const auto graph = graph_of("x",
                              "        rand = torch.rand(5)\n"
                              "        like = torch.randn_like(x)\n"
                              "        return (rand, like)\n");
  const std::vector<Value> inputs = {value(at::ones({4}))};
  const Fp64Program cast = cast_to_fp64(*graph, inputs);
  const auto run = [](const graph::Graph& which, const std::vector<Value>& values) {
    return run_fwd_maybe_bwd(program(which), values).output;
  };
  const TwoModels found =
      same_two_models(*graph,
                      [&](const std::vector<Value>& values) {
                        const Value wide = run(*cast.graph, cast_inputs_to_fp64(values));
                        std::vector<Value> narrow;
                        for (const Value& item : aten::unpack(wide)) {
                          EXPECT_EQ(item.leaf.toTensor().scalar_type(), at::kDouble);
                          narrow.push_back(value(item.leaf.toTensor().to(at::kFloat)));
                        }
                        return list(std::move(narrow));
                      },
                      inputs, {.use_fp64 = false, .same = {.tol = 0}});
  EXPECT_TRUE(found.same()) << found.comparison.message;
}

TEST(Fp64, InputsThatShareMemoryShareItAgain) {
  const Tensor base = at::zeros({4});
  const std::vector<Value> cast = cast_inputs_to_fp64({value(base), value(base.slice(0, 1, 3))});
  cast[1].leaf.toTensor().fill_(2);
  EXPECT_EQ(cast[0].leaf.toTensor().sum().item<double>(), 4);
  EXPECT_EQ(base.sum().item<double>(), 0);
}

TEST(Loss, DependsOnEveryTensor) {
  const Tensor x = at::ones({4}).set_requires_grad(true);
  const Tensor y = at::ones({2}).set_requires_grad(true);
  const Value output = dict({"a", "b"}, {value(x), list({value(y), c10::IValue(3), Value()})});
  EXPECT_TRUE(requires_bwd_pass(output));
  reduce_to_scalar_loss(output).backward();
  EXPECT_FLOAT_EQ(x.grad()[0].item<float>(), 1.F / 4 / 2);
  EXPECT_FLOAT_EQ(y.grad()[0].item<float>(), 1.F / 2 / 3 / 2);
  EXPECT_FALSE(requires_bwd_pass(list({c10::IValue(3), Value()})));
  EXPECT_FALSE(reduce_to_scalar_loss(list({Value()})).defined());
}

TEST(Inputs, KeepGradnessAndSharing) {
  const Tensor x = at::ones({4}).set_requires_grad(true);
  const std::vector<Value> copies =
      clone_inputs_retaining_gradness({list({value(x), value(x)}), c10::IValue(3)});
  const Tensor first = copies[0].items[0].leaf.toTensor();
  EXPECT_TRUE(first.requires_grad());
  EXPECT_TRUE(first.is_same(copies[0].items[1].leaf.toTensor()));
  EXPECT_FALSE(first.is_same(x));
  EXPECT_EQ(copies[1].leaf.toInt(), 3);
}

}  // namespace
}  // namespace assay::compare
