#include "aten/runner.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <thread>

#include "assay/error.h"
#include "graph/parse.h"

namespace assay::aten {
namespace {

std::unique_ptr<graph::Graph> graph_of(const std::string& parameters, const std::string& body,
                                       const std::string& classes = "") {
  return graph::parse(classes + "class Repro(torch.nn.Module):\n    def forward(self, " +
                          parameters + "):\n" + body,
                      "f.py");
}

Value full(double value, std::vector<std::int64_t> sizes = {3}) {
  return c10::IValue(at::full(sizes, value));
}

double number(const Value& value) { return value.leaf.toTensor().sum().item<double>(); }

std::string planning_error(const std::string& body) {
  try {
    auto graph = graph_of("x", body);
    GraphRunner runner(*graph);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Runner, RunsOperatorsFunctionsMethodsAndPythonOperators) {
  auto graph = graph_of("x, n",
                        "        a = torch.ops.aten.add.Tensor(x, x, alpha = 2)\n"
                        "        b = torch.mul(a, n)\n"
                        "        c = b.view(1, -1)\n"
                        "        d = c + 0.5\n"
                        "        m = n * 2\n"
                        "        return {'sum': d, 'twice': [m, None]}\n");
  const Value result = GraphRunner(*graph).run({full(1), Value(c10::IValue(2))});
  EXPECT_DOUBLE_EQ(number(result.items[0]), 3 * (1 + 2) * 2 + 1.5);
  EXPECT_EQ(result.items[1].items[0].leaf.toInt(), 4);
}

TEST(Runner, ItemsOfSeveralResults) {
  auto graph = graph_of("x",
                        "        v = torch.ops.aten.var_mean.correction(x, [0], correction = 0)\n"
                        "        mean = v[-1]\n"
                        "        s = torch.ops.aten.split.Tensor(x, 2)\n"
                        "        last = s[1]\n"
                        "        return (mean, last)\n");
  const Value result = GraphRunner(*graph).run({full(4)});
  EXPECT_DOUBLE_EQ(number(result.items[0]), 4);
  EXPECT_EQ(result.items[1].leaf.toTensor().numel(), 1);
}

// What a value holds is given back as soon as nobody needs it any more.
TEST(Runner, ValuesAreFreedAtTheirLastUse) {
  auto graph = graph_of("x",
                        "        a = torch.ops.aten.sin.default(x)\n"
                        "        b = torch.ops.aten.cos.default(a)\n"
                        "        c = torch.relu(b)\n"
                        "        d = torch.ops.aten.neg.default(c)\n"
                        "        return (d,)\n");
  std::map<std::string, c10::weak_intrusive_ptr<c10::TensorImpl>> seen;
  std::map<std::string, bool> dead_at_end;
  std::vector<Value> inputs;
  inputs.push_back(full(1));  // moved in: a braced list would keep a copy
  GraphRunner(*graph).run(std::move(inputs), [&](const graph::Node& node, const Value& value) {
    seen.emplace(node.name(),
                 c10::weak_intrusive_ptr<c10::TensorImpl>(value.leaf.toTensor().getIntrusivePtr()));
    if (node.name() != "d") return;
    for (auto& [name, tensor] : seen) dead_at_end[name] = tensor.expired();
  });
  EXPECT_TRUE(dead_at_end["x"]);
  EXPECT_TRUE(dead_at_end["a"]);
  EXPECT_TRUE(dead_at_end["b"]);
}

TEST(Runner, MayRunFromManyThreads) {
  auto graph = graph_of("x", "        a = torch.add(x, 1)\n        b = a * x\n        return b\n");
  const GraphRunner runner(*graph);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int run = 0; run < 50; ++run) {
        if (number(runner.run({full(i)})) == 3.0 * i * (i + 1)) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

// An overload chosen for one kind of value is not used for another.
TEST(Runner, TheOverloadFollowsTheValues) {
  auto graph = graph_of("x, y", "        a = torch.mul(x, y)\n        return a\n");
  const GraphRunner runner(*graph);
  EXPECT_DOUBLE_EQ(number(runner.run({full(2), full(3)})), 18);
  EXPECT_DOUBLE_EQ(number(runner.run({full(2), Value(c10::IValue(5))})), 30);
  EXPECT_DOUBLE_EQ(number(runner.run({full(2), Value(c10::IValue(0.5))})), 3);
}

constexpr const char* kBranches =
    "class yes(torch.nn.Module):\n    def forward(self, x):\n        return (x + 1,)\n"
    "class no(torch.nn.Module):\n    def forward(self, x):\n        return (x - 1,)\n"
    "class small(torch.nn.Module):\n    def forward(self, x):\n        return x.sum() < 100\n";

std::unique_ptr<graph::Graph> higher_order(const std::string& call) {
  return graph::parse(std::string(kBranches) +
                      "class Repro(torch.nn.Module):\n"
                      "    def __init__(self):\n        super().__init__()\n"
                      "        self.yes = yes()\n        self.no = no()\n"
                      "        self.small = small()\n"
                      "    def forward(self, p, x):\n"
                      "        yes_1 = self.yes\n        no_1 = self.no\n"
                      "        small_1 = self.small\n        r = " +
                      call + "\n        return r[0]\n");
}

TEST(Runner, HigherOrderOperators) {
  auto cond = higher_order("torch.ops.higher_order.cond(p, yes_1, no_1, (x,))");
  EXPECT_DOUBLE_EQ(number(GraphRunner(*cond).run({full(1, {}), full(5)})), 18);
  EXPECT_DOUBLE_EQ(number(GraphRunner(*cond).run({full(0, {}), full(5)})), 12);
  auto invoke = higher_order("torch.ops.higher_order.invoke_subgraph(yes_1, 'id', x)");
  EXPECT_DOUBLE_EQ(number(GraphRunner(*invoke).run({full(1, {}), full(5)})), 18);
  auto loop = higher_order("torch.ops.higher_order.while_loop(small_1, yes_1, (x,), ())");
  EXPECT_DOUBLE_EQ(number(GraphRunner(*loop).run({full(1, {}), full(5)})), 102);
}

TEST(Runner, AFailingOperatorIsNamed) {
  auto graph = graph_of("x",
                        "        # File: model.py:7 in forward, code: y = x @ x\n"
                        "        mm = torch.ops.aten.mm.default(x, x)\n"
                        "        return mm\n");
  try {
    GraphRunner(*graph).run({full(1)});
    FAIL();
  } catch (const OperatorError& error) {
    EXPECT_EQ(error.node_name(), "mm");
    EXPECT_EQ(error.call(), "torch.ops.aten.mm.default(x, x)");
    EXPECT_NE(std::string(error.what()).find("File \"model.py\", line 7, in forward"),
              std::string::npos);
    EXPECT_EQ(error.message().find("Exception raised from"), std::string::npos) << "no backtrace";
  }
}

TEST(Runner, AFunctionThatRaisesIsTheProgramsFailure) {
  auto dropout =
      graph_of("x", "        d = torch.nn.functional.dropout(x, 3.0, True)\n        return d\n");
  EXPECT_THROW(GraphRunner(*dropout).run({full(1)}), OperatorError);
  auto item = graph_of("x",
                       "        s = torch.ops.aten.split.Tensor(x, 2)\n"
                       "        t = s[7]\n        return t\n");
  EXPECT_THROW(GraphRunner(*item).run({full(1)}), OperatorError);
}

TEST(Runner, WhatCannotRunIsRefusedBeforeAnythingRuns) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  std::string error =
      planning_error("        a = torch.ops.aten.rellu.default(x)\n        return a\n");
  EXPECT_TRUE(has(error, "unknown operator 'torch.ops.aten.rellu.default'")) << error;
  EXPECT_TRUE(has(error, "torch.ops.aten.relu.default")) << error;
  error = planning_error("        a = torch.ops.aten.relu.Tensor(x)\n        return a\n");
  EXPECT_TRUE(has(error, "its overloads are torch.ops.aten.relu.default")) << error;
  error = planning_error("        a = torch.ops.aten.relu.default(x, 1)\n        return a\n");
  EXPECT_TRUE(has(error, "takes 1 positional arguments, 2 given")) << error;
  EXPECT_TRUE(has(error, "aten::relu(Tensor self) -> Tensor")) << error;
  error = planning_error("        a = torch.ops.aten.view.default(x, 'a')\n        return a\n");
  EXPECT_TRUE(has(error, "argument 'size' should be")) << error;
  error = planning_error("        a = torch.ops.aten.relu.default(y = x)\n        return a\n");
  EXPECT_TRUE(has(error, "argument 'self' is missing")) << error;
  for (const char* call : {"torch.ops.aten.from_file.default('/tmp/x', True, 4)",
                           "torch.from_file('/tmp/x', True, 4)"}) {
    error = planning_error("        a = " + std::string(call) + "\n        return a\n");
    EXPECT_TRUE(has(error, "it opens a file")) << error;
  }
  error = planning_error("        a = my_package.function(x)\n        return a\n");
  EXPECT_TRUE(has(error, "'my_package.function' needs a Python process")) << error;
}

TEST(Runner, InputsAreCounted) {
  auto graph = graph_of("x, y = 2", "        a = x * y\n        return a\n");
  const GraphRunner runner(*graph);
  EXPECT_DOUBLE_EQ(number(runner.run({full(1)})), 6) << "a default";
  EXPECT_THROW(runner.run({}), UserError);
  EXPECT_THROW(runner.run({full(1), full(1), full(1)}), UserError);
}

TEST(Runner, MetadataIsLearntByRunning) {
  auto graph = graph_of("x", "        a = torch.relu(x)\n        b = a.shape\n        return b\n");
  propagate_metadata(*graph, {full(1, {2, 3})});
  ASSERT_NE(graph->find("a")->meta.value.tensor(), nullptr);
  EXPECT_EQ(graph->find("a")->meta.value.tensor()->sizes, (std::vector<graph::SizeExpr>{2, 3}));
}

}  // namespace
}  // namespace assay::aten
