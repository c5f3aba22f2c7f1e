#include "graph/graph.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "graph/print.h"
#include "graph/verify.h"

namespace assay::graph {
namespace {

TEST(Graph, NamesAreMadeUniqueAsFxDoes) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_EQ(graph.call_function("torch.relu", {&x}).name(), "relu");
  EXPECT_EQ(graph.call_function("torch.relu", {&x}).name(), "relu_1");
  EXPECT_EQ(graph.call_function("torch.ops.aten.relu.default", {&x}).name(), "relu_2");
  EXPECT_EQ(graph.call_function("torch.max", {&x}).name(), "max_1") << "a name Python uses";
  EXPECT_EQ(graph.get_attr("layers.0.weight").name(), "layers_0_weight");
}

TEST(Graph, UsersFollowTheArguments) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  Node& sum = graph.call_function("torch.add", {&x, &x});
  graph.set_output(Tuple{{&sum}});
  EXPECT_EQ(x.users().size(), 2U);
  x.replace_all_uses_with(y);
  EXPECT_TRUE(x.users().empty());
  EXPECT_EQ(y.users().size(), 2U);
  graph.erase(x);
  EXPECT_EQ(graph.find("x"), nullptr);
  EXPECT_TRUE(find_problems(graph).empty());
}

TEST(Graph, ANodeWithUsersCannotBeErased) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.set_output(&x);
  EXPECT_THROW(graph.erase(x), InternalError);
}

TEST(Graph, NewNodesGoBeforeTheInsertionPoint) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("torch.relu", {&x});
  graph.set_output(&relu);
  {
    const Graph::InsertBefore here(graph, relu);
    Node& sine = graph.call_function("torch.sin", {&x});
    relu.set_arguments({&sine});
  }
  EXPECT_TRUE(find_problems(graph).empty());
  EXPECT_EQ(std::next(graph.nodes().begin())->name(), "sin");
}

TEST(Graph, ACloneIsEqualAndIndependent) {
  Graph graph;
  Node& x = graph.placeholder("x");
  auto body = std::make_shared<Graph>("Body");
  body->set_output(&body->placeholder("a"));
  graph.attributes().push_back({"body", body});
  Node& called = graph.call_module("body", {&x});
  graph.set_output(List{{&called, None{}}});
  auto copy = graph.clone();
  EXPECT_EQ(difference(graph, *copy), "");
  EXPECT_TRUE(find_problems(*copy).empty());
  copy->rename(*copy->find("x"), "z");
  EXPECT_EQ(difference(graph, *copy), "node name: 'x' against 'z'");
  EXPECT_EQ(copy->attribute("body")->subgraph(), body.get()) << "subgraphs are shared";
}

TEST(Target, KnowsOperators) {
  EXPECT_TRUE(Target("torch.ops.aten.relu.default").is_operator());
  EXPECT_FALSE(Target("torch.ops.aten.relu").is_operator());
  EXPECT_FALSE(Target("torch.relu").is_operator());
  EXPECT_EQ(Target("torch.ops.aten.add.Tensor").base_name(), "add");
  EXPECT_EQ(Target("torch.nn.functional.gelu").base_name(), "gelu");
}

}  // namespace
}  // namespace assay::graph
