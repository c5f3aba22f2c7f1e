#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include "assay/error.h"
#include "aten/runner.h"
#include "backends/error.h"
#include "backends/mode.h"
#include "backends_fixture.h"
#include "observe/subscribe.h"

namespace assay::backends {

using at::Tensor;
using aten::Value;

namespace {

std::vector<Value> leaves(const std::vector<Tensor>& inputs) {
  std::vector<Value> made;
  for (const Tensor& input : inputs) {
    Tensor leaf = input.detach().clone();
    if (leaf.is_floating_point()) leaf.set_requires_grad(true);
    made.emplace_back(c10::IValue(leaf));
  }
  return made;
}

Called call_once(const compare::Callable& compiled, const std::vector<Tensor>& inputs) {
  const std::vector<Value> values = leaves(inputs);
  Called called;
  Tensor sum;
  for (const Value& value : aten::unpack(compiled(values))) {
    const Tensor& result = value.leaf.toTensor();
    called.results.push_back(result);
    if (result.requires_grad()) {
      sum = sum.defined() ? sum + (result * result).sum() : (result * result).sum();
    }
  }
  if (sum.defined()) sum.backward();
  for (const Value& value : values) called.gradients.push_back(value.leaf.toTensor().grad());
  return called;
}

std::string compile_error(const std::string& backend,
                          const std::shared_ptr<const graph::Graph>& graph,
                          const std::vector<Value>& inputs) {
  try {
    compile_for_values(backend, graph, inputs);
  } catch (const BackendError& error) {
    return error.what();
  }
  return "compiled";
}

const std::vector<std::string>& working_backends() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const auto& backend : all_backends()) {
      if (backend->tags != std::vector<std::string>{"testing"}) {
        found.push_back(backend->name);
      }
    }
    return found;
  }();
  return names;
}

class EveryBackend : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Backends, EveryBackend, testing::ValuesIn(working_backends()),
                         [](const auto& test) { return test.param; });

}  // namespace

Called call(const std::string& backend, const std::shared_ptr<const graph::Graph>& graph,
            const std::vector<Tensor>& inputs) {
  const compare::Callable compiled = compile_for_values(backend, graph, leaves(inputs));
  call_once(compiled, inputs);
  return call_once(compiled, inputs);
}

void expect_equal(const Called& found, const Called& expected) {
  ASSERT_EQ(found.results.size(), expected.results.size());
  ASSERT_EQ(found.gradients.size(), expected.gradients.size());
  const auto compare = [](const Tensor& left, const Tensor& right, const std::string& what) {
    ASSERT_EQ(left.defined(), right.defined()) << what;
    if (!left.defined()) return;
    EXPECT_EQ(left.scalar_type(), right.scalar_type()) << what;
    EXPECT_EQ(left.requires_grad(), right.requires_grad()) << what;
    ASSERT_EQ(left.sizes(), right.sizes()) << what;
    EXPECT_TRUE(at::allclose(left, right, 1e-5, 1e-5)) << what;
  };
  for (std::size_t i = 0; i < found.results.size(); ++i) {
    compare(found.results[i], expected.results[i], "result " + std::to_string(i));
  }
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    compare(found.gradients[i], expected.gradients[i], "gradient " + std::to_string(i));
  }
}

std::shared_ptr<const graph::Graph> model() {
  return graph_of(
      "x, weight, bias, scale",
      "        linear = torch.nn.functional.linear(x, weight, bias)\n"
      "        norm = torch.nn.functional.layer_norm(linear, (6,), scale, None, 1e-05)\n"
      "        dropped = torch.nn.functional.dropout(norm, 0.5, False, False)\n"
      "        relu = torch.relu(dropped)\n"
      "        view = relu.view(2, -1)\n"
      "        chunk = torch.chunk(view, 2, 1)\n"
      "        first = chunk[0]\n"
      "        second = chunk[1]\n"
      "        cat = torch.cat([second, first], dim = 1)\n"
      "        column = cat[:, 0]\n"
      "        return (cat * 2, column, first)\n");
}

std::vector<Tensor> model_inputs() {
  at::manual_seed(7);
  return {at::randn({4, 5}), at::randn({6, 5}), at::randn({6}), at::randn({6})};
}

TEST_P(EveryBackend, GivesEagersResultsAndGradients) {
  expect_equal(call(GetParam(), model(), model_inputs()), call("eager", model(), model_inputs()));
}

TEST_P(EveryBackend, ChangesInputsAsEagerDoes) {
  const auto graph = graph_of("x, buffer",
                              "        add_ = buffer.add_(x.detach())\n"
                              "        mul = add_ * x\n"
                              "        return (mul, buffer + 1)\n");
  const auto run = [&](const std::string& backend) {
    at::manual_seed(3);
    std::vector<Value> inputs = {c10::IValue(at::randn({3})), c10::IValue(at::randn({3}))};
    const compare::Callable compiled = compile_for_values(backend, graph, inputs);
    const Value result = compiled(inputs);
    return std::pair(inputs[1].leaf.toTensor(), result.items[0].leaf.toTensor());
  };
  const auto [buffer, result] = run(GetParam());
  const auto [expected_buffer, expected] = run("eager");
  EXPECT_TRUE(buffer.equal(expected_buffer));
  EXPECT_TRUE(result.equal(expected));
}

TEST_P(EveryBackend, TakesAttributesAndNumbersAndGivesStructures) {
  const auto graph = graph_of(
      "x, n",
      "        weight = self.weight\n"
      "        add = x + weight\n"
      "        mul = add * n\n"
      "        return {'mul': mul, 'rest': [n, None, add]}\n",
      "    def __init__(self):\n        super().__init__()\n"
      "        self.register_buffer('weight', torch.zeros([2, 2], dtype = torch.float32))\n");
  const std::vector<Value> inputs = {c10::IValue(at::randn({2, 2})), c10::IValue(3)};
  const Value result = compile_for_values(GetParam(), graph, inputs)(inputs);
  ASSERT_EQ(result.keys, (std::vector<std::string>{"mul", "rest"}));
  const Tensor& x = inputs[0].leaf.toTensor();
  EXPECT_TRUE(result.items[0].leaf.toTensor().equal(x * 3));
  EXPECT_EQ(result.items[1].items[0].leaf.toInt(), 3);
  EXPECT_TRUE(result.items[1].items[1].is_none());
  EXPECT_TRUE(result.items[1].items[2].leaf.toTensor().equal(x));
}

TEST_P(EveryBackend, GivesRandomNumbersAsEagerDoes) {
  const auto graph = graph_of("x",
                              "        unused = torch.rand_like(x)\n"
                              "        noise = torch.rand_like(x)\n"
                              "        return (x * noise,)\n");
  const auto run = [&](const std::string& backend) {
    const std::vector<Value> inputs = {c10::IValue(at::full({4}, 1.0))};
    const compare::Callable compiled = compile_for_values(backend, graph, inputs);
    at::manual_seed(11);
    return compiled(inputs).items[0].leaf.toTensor();
  };
  EXPECT_TRUE(run(GetParam()).equal(run("eager")));
}

TEST(Backends, UnknownNameGivesTheNearest) {
  try {
    find_backend("aot_eagr");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean aot_eager"), std::string::npos);
  }
}

TEST(EagerNoexcept, AnExceptionIsTheBackendsFailure) {
  const auto graph = graph_of("x", "        bad = torch.mm(x, x)\n        return (bad,)\n");
  const std::vector<Value> inputs = {c10::IValue(at::randn({2, 3}))};
  const compare::Callable compiled = compile_for_values("eager_noexcept", graph, inputs);
  try {
    compiled(inputs);
    FAIL();
  } catch (const BackendError& error) {
    EXPECT_EQ(error.node(), "bad");
    EXPECT_NE(error.message().find("should not have raised, but node 'bad' failed"),
              std::string::npos);
  }
}

TEST(PreDispatchEager, PrintsOperators) {
  const std::vector<Value> inputs = leaves(model_inputs());
  testing::internal::CaptureStderr();
  compile_for_values("pre_dispatch_eager", model(), inputs);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("torch.ops.aten.linear.default(x, weight, bias)"), std::string::npos) << text;
  EXPECT_EQ(text.find("torch.nn.functional"), std::string::npos) << text;
}

TEST(Torchscript, AFailureQuotesTheCall) {
  const auto graph = graph_of("x", "        bad = torch.mm(x, x)\n        return (bad,)\n");
  const compare::Callable compiled =
      compile_for_values("ts", graph, {c10::IValue(at::randn({2, 2}))});
  try {
    compiled({c10::IValue(at::randn({2, 3}))});
    FAIL();
  } catch (const BackendError& error) {
    EXPECT_NE(error.message().find("mm = torch.ops.aten.mm.default(x, x)"), std::string::npos)
        << error.message();
  }
}

TEST(Torchscript, TakesBoolsForNumbers) {
  const auto graph = graph_of("x",
                              "        full = torch.ops.aten.full.default([2], True)\n"
                              "        same = torch.ops.aten.eq.Scalar(full, True)\n"
                              "        return (full, same)\n");
  const std::vector<Value> inputs = {c10::IValue(at::randn({2}))};
  for (const char* backend : {"ts", "aot_ts"}) {
    const Value result = compile_for_values(backend, graph, inputs)(inputs);
    EXPECT_EQ(result.items[0].leaf.toTensor().scalar_type(), at::kBool);
    EXPECT_TRUE(result.items[1].leaf.toTensor().all().item<bool>());
  }
}

TEST(WithMode, LogsEveryOperatorWithoutAMode) {
  std::vector<std::string> messages;
  const observe::Subscription listening = observe::subscribe(
      [&](const observe::Event& event) { messages.emplace_back(event.message); });
  call("aot_eager_decomp_partition_with_mode", model(), model_inputs());
  const bool has_mm = std::ranges::any_of(messages, [](const std::string& message) {
    return message.find("torch.ops.aten.mm.default(") != std::string::npos ||
           message.find("torch.ops.aten.addmm.default(") != std::string::npos;
  });
  EXPECT_TRUE(has_mm);
}

TEST(WithMode, CallsTheModeThatIsSet) {
  std::size_t calls = 0;
  const ModeScope mode([&](const graph::Node& node, const Value&) { calls += node.is_call(); });
  call("aot_eager_decomp_partition_with_mode", model(), model_inputs());
  EXPECT_GT(calls, 20U);
}

TEST(Crossref, NamesTheNodeAndTheDifference) {
  const auto graph = graph_of("x",
                              "        moody = torch.ops.assay_lying.moody.default(x)\n"
                              "        return (moody + 1,)\n");
  const std::vector<Value> inputs = {c10::IValue(at::randn({2, 3}))};
  const compare::Callable compiled =
      compile_for_values("aot_eager_decomp_partition_crossref", graph, inputs);
  try {
    compiled(inputs);
    FAIL();
  } catch (const aten::OperatorError& error) {
    EXPECT_EQ(error.node_name(), "moody");
    EXPECT_NE(error.message().find("(strides): declared f32[2, 3][3, 1]cpu, found "
                                   "f32[2, 3][1, 2]cpu"),
              std::string::npos)
        << error.message();
  }
}

TEST(NonLeaf, RefusesInputsWithAHistory) {
  const auto graph = graph_of("x", "        return (torch.relu(x),)\n");
  const Tensor leaf = at::randn({2}).set_requires_grad(true);
  const std::string name = "non_leaf_compile_error_TESTING_ONLY";
  EXPECT_EQ(compile_error(name, graph, {c10::IValue(leaf)}), "compiled");
  EXPECT_NE(compile_error(name, graph, {c10::IValue(leaf * 2)}).find("the input 'x'"),
            std::string::npos);
}

}  // namespace assay::backends
