// What else than numbers can differ: mutation, strides, aliasing, a second call; and all
// differences at once.
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include "compare_fixture.h"

namespace assay::compare {
namespace {

using at::Tensor;
using aten::Value;
using Kind = Comparison::Kind;

Comparison compare(const std::string& eager, const std::string& compiled,
                   const std::vector<Value>& inputs, const TwoModelsOptions& options) {
  const auto graph = graph_of("x, y", eager);
  const auto other = graph_of("x, y", compiled);
  return same_two_models(*graph, program(*other), inputs, options).comparison;
}

std::vector<Value> two_inputs() { return {value(at::randn({3, 4})), value(at::randn({3, 4}))}; }

TEST(Behavior, AMutationThatEagerDoesNotMake) {
  const auto found =
      compare("        a = x + y\n        return (a,)\n",
              "        a = x + y\n        b = y.add_(1)\n        return (a,)\n", two_inputs(), {});
  EXPECT_EQ(found.kind, Kind::mutation);
  EXPECT_EQ(found.where, "input['y']");
  EXPECT_EQ(found.message, "the compiled program changes it, eager does not");
}

TEST(Behavior, AMutationThatIsMissing) {
  const auto found = compare("        a = x.mul_(2)\n        return (y,)\n",
                             "        return (y,)\n", two_inputs(), {});
  EXPECT_EQ(found.kind, Kind::mutation);
  EXPECT_EQ(found.message, "eager changes it, the compiled program does not");
}

TEST(Behavior, AWrongMutationIsAWrongValue) {
  const auto found = compare("        a = x.mul_(2)\n        return (y,)\n",
                             "        a = x.mul_(3)\n        return (y,)\n", two_inputs(), {});
  EXPECT_EQ(found.kind, Kind::values);
  EXPECT_EQ(found.where, "input['x']");
}

TEST(Behavior, Strides) {
  const std::string eager = "        a = x + y\n        return (x, a)\n";
  const std::string compiled =
      "        a = x + y\n        b = a.t().contiguous().t()\n        return (x, b)\n";
  const auto found = compare(eager, compiled, two_inputs(), {.strides = true});
  EXPECT_EQ(found.kind, Kind::strides);
  EXPECT_EQ(found.where, "output[1]");
  EXPECT_EQ(found.message, "eager's strides are [4, 1], the result's [1, 3]");
  EXPECT_TRUE(compare(eager, compiled, two_inputs(), {}).same) << "only if asked for";
  // Nobody can tell the strides of one element, and holes promise nothing.
  const std::vector<Value> thin = {value(at::ones({1, 4})), value(at::ones({1, 4}))};
  EXPECT_TRUE(compare(eager, compiled, thin, {.strides = true}).same);
  EXPECT_TRUE(compare("        a = x[:, 0:4:2]\n        return (a,)\n",
                      "        a = x[:, 0:4:2].contiguous()\n        return (a,)\n", two_inputs(),
                      {.strides = true})
                  .same);
}

TEST(Behavior, Aliasing) {
  const std::string view = "        a = x.view(12)\n        return (a,)\n";
  const std::string copy = "        a = x.view(12).clone()\n        return (a,)\n";
  auto found = compare(view, copy, two_inputs(), {.aliasing = true});
  EXPECT_EQ(found.kind, Kind::aliasing);
  EXPECT_EQ(found.where, "output[0]");
  EXPECT_EQ(found.message,
            "it shares memory with input['x'] in eager, but not in the compiled program");
  found = compare(copy, view, two_inputs(), {.aliasing = true});
  EXPECT_EQ(found.message,
            "it shares memory with input['x'] in the compiled program, but not in eager");
  found = compare("        a = x + y\n        return (a, a.t())\n",
                  "        a = x + y\n        return (a, a.t().clone())\n", two_inputs(),
                  {.aliasing = true});
  EXPECT_EQ(found.where, "output[1]");
  EXPECT_EQ(found.message,
            "it shares memory with output[0] in eager, but not in the compiled program");
  EXPECT_TRUE(compare(view, view, two_inputs(), {.strides = true, .aliasing = true}).same);
}

TEST(Behavior, ASecondCall) {
  const auto graph = graph_of("x, y", "        a = x + y\n        return (a,)\n");
  const auto right = program(*graph);
  int calls = 0;
  const Callable forgetful = [&](std::vector<Value> inputs) {
    if (++calls > 1) inputs[0] = value(at::ones({3, 4}));
    return right(std::move(inputs));
  };
  EXPECT_TRUE(same_two_models(*graph, forgetful, two_inputs()).same()) << "only if asked for";
  calls = 0;
  const auto found =
      same_two_models(*graph, forgetful, two_inputs(), {.second_call = true}).comparison;
  EXPECT_EQ(found.kind, Kind::second_call);
  EXPECT_EQ(found.where, "output[0]");
  EXPECT_TRUE(found.message.starts_with("on the second call: ")) << found.message;

  calls = 0;
  const Callable tired = [&](std::vector<Value> inputs) -> Value {
    if (++calls > 1) throw std::runtime_error("no more");
    return right(std::move(inputs));
  };
  const auto raised = same_two_models(*graph, tired, two_inputs(), {.second_call = true});
  EXPECT_EQ(raised.comparison.kind, Kind::second_call);
  EXPECT_EQ(raised.comparison.message, "on the second call: it raises no more");
}

TEST(Behavior, ASecondCallHasTheStateThatTheFirstOneLeft) {
  const auto graph = graph::parse(
      "class Repro(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.register_buffer('seen', torch.zeros([], dtype=torch.float32))\n"
      "    def forward(self, x):\n"
      "        seen = self.seen\n"
      "        add_ = seen.add_(1)\n"
      "        mul = x * add_\n"
      "        return (mul,)\n",
      "<test>");
  const std::vector<Value> inputs = {value(at::ones({3}))};
  EXPECT_TRUE(same_two_models(*graph, program(*graph), inputs, {.second_call = true}).same());
}

TEST(Behavior, AllDifferencesOfSmallValuesToo) {
  const auto graph = graph_of("x, y",
                              "        a = x * 1e-6\n        b = x + y\n        c = y * 2\n"
                              "        return (a, b, c)\n");
  const auto faulty =
      graph_of("x, y",
               "        a = x * 2e-6\n        b = x + y\n        c = y.double() * 2\n"
               "        return (a, b, c)\n");
  const auto found = all_differences(*graph, program(*faulty), two_inputs());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].where, "output[0]");
  EXPECT_EQ(found[0].kind, Kind::values);
  EXPECT_EQ(found[1].where, "output[2]");
  EXPECT_EQ(found[1].kind, Kind::dtype);
  EXPECT_TRUE(all_differences(*graph, program(*graph), two_inputs()).empty());
}

TEST(Behavior, AllDifferencesOfGradients) {
  const auto graph =
      graph_of("x, y", "        a = x * 2\n        b = y * 3\n        return (a, b)\n");
  const auto faulty = graph_of(
      "x, y", "        a = x * 2\n        b = y.detach() * 3 + y * 0\n        return (a, b)\n");
  std::vector<Value> inputs = two_inputs();
  for (const Value& input : inputs) input.leaf.toTensor().requires_grad_();
  const auto found = all_differences(*graph, program(*faulty), inputs);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].where, "gradient['y']");
}

}  // namespace
}  // namespace assay::compare
