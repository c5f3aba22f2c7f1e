#include "graph/verify.h"

#include <gtest/gtest.h>

namespace assay::graph {
namespace {

std::string problems(const Graph& graph, const VerifyOptions& options = {}) {
  std::string text;
  for (const std::string& problem : find_problems(graph, options)) text += problem + "\n";
  return text;
}

TEST(Verify, ASoundGraphHasNoProblems) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.set_output(&graph.call_function("torch.relu", {&x}));
  EXPECT_EQ(problems(graph), "");
}

TEST(Verify, UseBeforeDefinition) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& first = graph.call_function("torch.relu", {&x});
  Node& second = graph.call_function("torch.sin", {&x});
  first.set_arguments({&second});
  graph.set_output(&first);
  EXPECT_EQ(problems(graph), "node 'relu': it uses 'sin' before its definition\n");
}

TEST(Verify, NodesOfAnotherGraph) {
  Graph other;
  Node& foreign = other.placeholder("foreign");
  Graph graph;
  graph.placeholder("x");
  graph.set_output(&foreign);
  EXPECT_EQ(problems(graph), "node 'output': it uses a node that is not in the graph\n");
}

TEST(Verify, MissingOutput) {
  Graph graph;
  graph.placeholder("x");
  EXPECT_EQ(problems(graph), "the graph has no output\n");
}

TEST(Verify, PlaceholdersComeFirst) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("torch.relu", {&x});
  graph.placeholder("late");
  graph.set_output(&relu);
  EXPECT_EQ(problems(graph), "node 'late': a placeholder follows other nodes\n");
}

TEST(Verify, NamesThatAreNoNames) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& call = graph.call_function("torch.relu; import os", {&x}, {}, "y");
  graph.set_output(&call);
  EXPECT_EQ(problems(graph), "node 'y': its target 'torch.relu; import os' is not a name\n");
}

TEST(Verify, MissingAttribute) {
  Graph graph;
  graph.set_output(&graph.get_attr("weight"));
  EXPECT_EQ(problems(graph), "node 'weight': the graph has no attribute 'weight'\n");
}

TEST(Verify, MetadataMustFit) {
  Graph graph;
  Node& x = graph.placeholder("x");
  TensorMeta meta;
  meta.sizes = {2, 3};
  meta.strides = {1};
  x.meta.value = {meta};
  graph.set_output(&x);
  EXPECT_EQ(problems(graph), "node 'x': its metadata has 2 sizes but 1 strides\n");
  Graph bare;
  bare.set_output(&bare.placeholder("x"));
  VerifyOptions options;
  options.require_metadata = true;
  EXPECT_EQ(problems(bare, options), "node 'x': it has no metadata\n");
}

TEST(Verify, CallsAreCheckedByTheCaller) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.set_output(&graph.call_function("torch.ops.aten.nope.default", {&x}));
  VerifyOptions options;
  options.check_call = [](const Node&) { return std::optional<std::string>("no such operator"); };
  EXPECT_EQ(problems(graph, options), "node 'nope': no such operator\n");
}

}  // namespace
}  // namespace assay::graph
