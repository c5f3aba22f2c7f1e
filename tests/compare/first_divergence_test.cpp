// Which call is to blame. Whole models are in test_first_divergence.py.
#include "compare/first_divergence.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include "assay/error.h"
#include "aten/call.h"
#include "backends/fault.h"
#include "compare_fixture.h"

namespace assay::compare {
namespace {

using at::Tensor;
using aten::Value;

const char* const kChain =
    "        # File: /home/me/model.py:7 in forward, code: y = torch.sin(x)\n"
    "        sin = torch.ops.aten.sin.default(x)\n"
    "        relu = torch.ops.aten.relu.default(sin)\n"
    "        exp = torch.ops.aten.exp.default(relu)\n"
    "        return (exp,)\n";

std::string node_named(const std::optional<Divergence>& found) {
  return found ? found->node : "none";
}

TEST(FirstDivergence, AnInjectedFault) {
  const std::shared_ptr<const graph::Graph> graph = graph_of("x", kChain);
  const std::vector<Value> inputs = {value(at::randn({8}))};
  for (const std::string op : {"sin", "relu", "exp"}) {
    backends::FaultInjector injector(backends::parse_faults(op + ":accuracy"), "eager");
    EXPECT_EQ(node_named(first_divergence(*graph, *injector.inject(graph), inputs)), op);
  }
  EXPECT_EQ(node_named(first_divergence(*graph, *graph, inputs)), "none");
}

TEST(FirstDivergence, SaysWhereTheCallIsFrom) {
  const std::shared_ptr<const graph::Graph> graph = graph_of("x", kChain);
  backends::FaultInjector injector(backends::parse_faults("sin:nan"), "eager");
  const auto found = first_divergence(*graph, *injector.inject(graph), {value(at::randn({8}))});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->call, "torch.ops.aten.sin.default(x)");
  ASSERT_EQ(found->stack.size(), 1U);
  EXPECT_EQ(found->stack[0].line, 7);
  EXPECT_TRUE(found->text_offset.has_value());
  EXPECT_EQ(found->comparison.kind, Comparison::Kind::nan);
}

TEST(FirstDivergence, AnInPlaceCallIsJudgedByWhatItLeaves) {
  const auto graph = graph_of("x",
                              "        relu_ = torch.relu_(x)\n"
                              "        add = x + 1\n"
                              "        return (add,)\n");
  const auto wrong = graph_of("x",
                              "        relu_ = x.mul_(3)\n"
                              "        add = x + 1\n"
                              "        return (add,)\n");
  const Tensor x = at::full({4}, -2.0);
  EXPECT_EQ(node_named(first_divergence(*graph, *graph, {value(x)})), "none");
  EXPECT_EQ(node_named(first_divergence(*graph, *wrong, {value(x)})), "relu_");
  EXPECT_TRUE(at::equal(x, at::full({4}, -2.0)));
}

TEST(FirstDivergence, AnArgumentThatShouldHaveChanged) {
  const auto graph = graph_of("x",
                              "        add_ = x.add_(1)\n"
                              "        return (add_,)\n");
  const auto pure = graph_of("x",
                             "        add_ = x.add(1)\n"
                             "        return (add_,)\n");
  const auto found = first_divergence(*graph, *pure, {value(at::ones({4}))});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->comparison.where, "input['x']");
}

TEST(FirstDivergence, SmallNumbersCountAsMuchAsLargeOnes) {
  const auto graph = graph_of("x", "        mul = x * 2\n        return (mul,)\n");
  const auto wrong = graph_of("x", "        mul = x * 2.01\n        return (mul,)\n");
  const std::vector<Value> inputs = {value(at::randn({100}).mul(1e-9))};
  EXPECT_EQ(node_named(first_divergence(*graph, *wrong, inputs)), "mul");
  EXPECT_EQ(node_named(first_divergence(*graph, *wrong, inputs, {.relative = false})), "none");
}

TEST(FirstDivergence, RoundingIsNoDivergence) {
  const auto graph = graph_of("x, y", "        mm = torch.mm(x, y)\n        return (mm,)\n");
  const auto other = graph_of("x, y",
                              "        t = torch.mm(y.t(), x.t())\n"
                              "        mm = t.t()\n"
                              "        return (mm,)\n");
  const std::vector<Value> inputs = {value(at::randn({64, 300})), value(at::randn({300, 64}))};
  EXPECT_EQ(node_named(first_divergence(*graph, *other, inputs)), "none");
}

TEST(FirstDivergence, ACallMadeOfOthers) {
  const auto graph = graph_of("x",
                              "        sin = torch.sin(x)\n"
                              "        gelu = torch.nn.functional.silu(sin)\n"
                              "        return (gelu,)\n");
  const std::string parts =
      "        sin = torch.sin(x)\n"
      "        sigmoid = torch.sigmoid(sin)\n"
      "        gelu = sigmoid * sin";
  const auto right = graph_of("x", parts + "\n        return (gelu,)\n");
  const auto wrong = graph_of("x", parts + " * 2\n        return (gelu,)\n");
  const std::vector<Value> inputs = {value(at::randn({9}))};
  EXPECT_EQ(node_named(first_divergence(*graph, *right, inputs)), "none");
  EXPECT_EQ(node_named(first_divergence(*graph, *wrong, inputs)), "gelu");
}

TEST(FirstDivergence, RandomAndUnsetMemoryAreNotBlamed) {
  const auto graph = graph_of("x",
                              "        rand = torch.rand_like(x)\n"
                              "        empty = torch.empty(1000)\n"
                              "        add = x + rand\n"
                              "        return (add, empty)\n");
  const std::vector<Value> inputs = {value(at::ones({1000}))};
  EXPECT_EQ(node_named(first_divergence(*graph, *graph, inputs)), "none");
}

TEST(FirstDivergence, AKernelForOneCall) {
  const auto graph = graph_of("x", kChain);
  const NodeKernel wrong_exp = [](const graph::Node& node, std::vector<Value> inputs) -> Value {
    const std::string name(node.target().base_name());
    const Value right = aten::call("aten::" + name, {std::move(inputs), {}});
    return name == "exp" ? value(right.leaf.toTensor().mul(1.01)) : right;
  };
  const auto found = first_divergence(*graph, wrong_exp, {value(at::randn({8}))});
  EXPECT_EQ(node_named(found), "exp");
}

TEST(FirstDivergence, ABranchOfACall) {
  const auto with_branch = [](const std::string& body) {
    return graph::parse(
        "class yes(torch.nn.Module):\n    def forward(self, x):\n        return (" + body +
            ",)\n"
            "class Repro(torch.nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n        self.yes = yes()\n"
            "    def forward(self, p, x):\n        yes_1 = self.yes\n"
            "        sin = torch.sin(x)\n"
            "        cond = torch.ops.higher_order.cond(p, yes_1, yes_1, (sin,))\n"
            "        getitem = cond[0]\n        return (getitem,)\n",
        "<test>");
  };
  const auto graph = with_branch("x * 2");
  const std::vector<Value> inputs = {value(at::ones({}, at::kBool)), value(at::randn({4}))};
  EXPECT_EQ(node_named(first_divergence(*graph, *graph, inputs)), "none");
  EXPECT_EQ(node_named(first_divergence(*graph, *with_branch("x * 3"), inputs)), "cond");
}

TEST(FirstDivergence, GraphsWithNothingInCommon) {
  const auto graph = graph_of("x", kChain);
  const auto other = graph_of("x", "        other = torch.cos(x)\n        return (other,)\n");
  EXPECT_THROW(first_divergence(*graph, *other, {value(at::ones({2}))}), UserError);
}

}  // namespace
}  // namespace assay::compare
