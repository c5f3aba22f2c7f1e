// Size symbols, sizes as arguments, offsets and tangents in the text form.
#include <gtest/gtest.h>

#include "graph/parse.h"
#include "graph/print.h"
#include "graph/verify.h"

namespace assay::graph {
namespace {

SizeExpr s0() { return SizeExpr::symbol("s0"); }

std::unique_ptr<Graph> symbolic() {
  auto graph = std::make_unique<Graph>();
  graph->symbols()["s0"] = {4, {2, INT64_MAX}};
  graph->symbols()["s1"] = {{}, {INT64_MIN, 16}};
  Node& x = graph->placeholder("x");
  TensorMeta meta;
  meta.sizes = {s0(), 4};
  meta.strides = {4, 1};
  meta.storage_offset = SizeExpr::binary(SizeExpr::Operation::multiply, 2, s0());
  x.meta.value = {meta};
  const SizeExpr largest = SizeExpr::binary(SizeExpr::Operation::maximum, s0(), 1);
  const SizeExpr twice = SizeExpr::binary(SizeExpr::Operation::multiply, s0(), 2);
  Node& view = graph->call_method("view", {&x, List{{s0(), 4}}});
  Node& sum = graph->call_function("operator.mul", {&view, twice});
  Node& full =
      graph->call_function("torch.full", {List{{largest, twice}}, 1}, {{"out", SizeExpr(3)}});
  graph->set_output(Tuple{{&sum, &full, twice}});
  return graph;
}

TEST(Symbols, TextReadsBack) {
  const auto graph = symbolic();
  EXPECT_TRUE(find_problems(*graph).empty());
  const std::string text = print(*graph);
  for (const char* part :
       {"        # Symbol: s0 = 4, VR[2, int_oo]\n", "        # Symbol: s1, VR[-int_oo, 16]\n",
        "x: \"f32[s0, 4][4, 1]cpu storage_offset=2*s0\"", "x.view([s0, 4])",
        "torch.full([max(1, s0), 2*s0], 1, out = 3)", "return (mul, full, 2*s0)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  const auto again = parse(text);
  EXPECT_EQ(difference(*graph, *again), "") << text;
  EXPECT_EQ(print(*again), text);
}

TEST(Symbols, CopiesAndEqualityCarryThem) {
  const auto graph = symbolic();
  const auto copy = graph->clone();
  EXPECT_EQ(difference(*graph, *copy), "");
  copy->symbols()["s0"].hint = 5;
  EXPECT_NE(difference(*graph, *copy), "");
}

TEST(Symbols, ASizeWithoutSymbolsIsANumber) {
  EXPECT_EQ(*Argument(SizeExpr(3)).get_if<std::int64_t>(), 3);
  EXPECT_NE(Argument(s0()).get_if<SizeExpr>(), nullptr);
}

TEST(Symbols, WhatTheTextCannotTellIsAProblem) {
  Graph graph;
  graph.symbols()["s0"] = {1, {2, 4}};
  Node& s0_input = graph.placeholder("s0");
  graph.call_function("torch.ones", {List{{s0(), SizeExpr::symbol("u0")}}});
  graph.set_output(&s0_input);
  std::string all;
  for (const std::string& problem : find_problems(graph)) all += problem + "\n";
  for (const char* part :
       {"the hint of the size symbol 's0' is not in its range",
        "the size symbol 's0' is also a node", "does not declare the size symbol 'u0'"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
}

TEST(Symbols, ValuesComeBeforeSymbols) {
  const auto graph = parse(
      "class Repro(torch.nn.Module):\n"
      "    def forward(self, s0: \"Sym(s0)\", x):\n"
      "        # Symbol: s0 = 4, VR[2, int_oo]\n"
      "        # Symbol: is not one of ours\n"
      "        view = x.view(s0, 2)\n"
      "        return (view,)\n");
  EXPECT_EQ(graph->find("view")->args()[1].node(), graph->find("s0"));
  EXPECT_EQ(graph->symbols().size(), 1U);
}

std::unique_ptr<Graph> two_inputs(const char* first, const char* second) {
  auto graph = std::make_unique<Graph>();
  Node& a = graph->placeholder(first);
  Node& b = graph->placeholder(second);
  graph->set_output(Tuple{{&a, &b}});
  return graph;
}

TEST(Tangents, AreKnownByTheirRole) {
  const auto stock = parse(
      "class joint(torch.nn.Module):\n"
      "    def forward(self, primals_1, tangents_1):\n"
      "        return (primals_1, tangents_1)\n");
  EXPECT_EQ(stock->find("primals_1")->meta.role, InputRole::ordinary);
  EXPECT_EQ(stock->find("tangents_1")->meta.role, InputRole::tangent);
  EXPECT_EQ(print(*stock).find("# Tangents"), std::string::npos) << "the name says it";

  const auto named = two_inputs("x", "grad");
  named->find("grad")->meta.role = InputRole::tangent;
  EXPECT_NE(print(*named).find("        # Tangents: grad\n"), std::string::npos);
  EXPECT_EQ(difference(*named, *parse(print(*named))), "");

  const auto unlucky = two_inputs("x", "tangents_1");
  EXPECT_EQ(difference(*unlucky, *parse(print(*unlucky))), "") << print(*unlucky);
  const auto lucky = unlucky->clone();
  lucky->find("tangents_1")->meta.role = InputRole::tangent;
  EXPECT_NE(difference(*unlucky, *lucky), "");
}

}  // namespace
}  // namespace assay::graph
