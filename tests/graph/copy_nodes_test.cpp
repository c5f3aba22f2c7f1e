#include "graph/copy_nodes.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "graph/verify.h"

namespace assay::graph {
namespace {

std::unique_ptr<Graph> sample() {
  return parse(
      "class Body(torch.nn.Module):\n"
      "    def forward(self, a):\n"
      "        return (a,)\n"
      "class Repro(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        self.register_buffer('scale', torch.tensor(0.5, dtype=torch.float32))\n"
      "        self.body = Body()\n"
      "    def forward(self, x: \"f32[2][1]cpu\"):\n"
      "        # File: model.py:3 in forward, code: y = x * scale\n"
      "        # From: mul\n"
      "        scale = self.scale\n"
      "        mul: \"f32[2][1]cpu\" = torch.mul(x, scale)\n"
      "        called = self.body(mul)\n"
      "        return (called,)\n");
}

TEST(CopyNodes, AttributesAndMetadataComeAlong) {
  const auto graph = sample();
  Graph part;
  NodeCopier copier(*graph, part);
  copier.copy(*graph->find("x"));
  copier.copy(*graph->find("scale"));
  Node& mul = copier.copy(*graph->find("mul"));
  part.set_output(&mul);
  EXPECT_TRUE(find_problems(part).empty());
  EXPECT_EQ(part.attributes().size(), 1U) << "only those in use";
  EXPECT_EQ(mul.meta, graph->find("mul")->meta);
  EXPECT_EQ(print_call(mul), "torch.mul(x, scale)");
}

TEST(CopyNodes, AttributesCanBeKeptApart) {
  const auto graph = sample();
  const auto other = sample();
  Graph::InsertBefore before(*other, *other->output());
  NodeCopier copier(*graph, *other, "inner_");
  copier.replace(*graph->find("x"), other->find("called"));
  for (const char* name : {"scale", "mul", "called"}) copier.copy(*graph->find(name));
  EXPECT_TRUE(find_problems(*other).empty());
  EXPECT_EQ(other->attributes().size(), 4U);
  EXPECT_EQ(print_call(*other->find("called_1")), "self.inner_body(mul_1)");
  EXPECT_EQ(print_call(*other->find("mul_1")), "torch.mul(called, scale_1)");
}

TEST(CopyNodes, WhatWasNotCopiedIsAnError) {
  const auto graph = sample();
  Graph part;
  EXPECT_THROW(NodeCopier(*graph, part).copy(*graph->find("mul")), InternalError);
}

TEST(CopyNodes, ACopyOfAGraphIsTheSameStage) {
  const auto graph = sample();
  NodeMap copies;
  const auto copy = copy_graph(*graph, copies);
  EXPECT_EQ(difference(*graph, *copy), "");
  EXPECT_EQ(copy->identity(), graph->identity());
  EXPECT_NE(sample()->identity(), graph->identity());
  for (const Node& node : graph->nodes()) EXPECT_EQ(copies.at(&node).node()->id(), node.id());
  EXPECT_NE(copy->call_function("torch.relu", {}).id(), copy->output()->id());
}

TEST(CopyNodes, NodesThatWereReadShareTheirStack) {
  const auto graph = sample();
  EXPECT_EQ(&graph->find("scale")->meta.stack.frames(), &graph->find("mul")->meta.stack.frames());
  EXPECT_EQ(&graph->clone()->find("mul")->meta.stack.frames(),
            &graph->find("mul")->meta.stack.frames());
  StackTable table;
  const StackTrace one = table.intern({{"model.py", 1, "f", "x"}});
  EXPECT_EQ(&table.intern({{"model.py", 1, "f", "x"}}).frames(), &one.frames());
  EXPECT_FALSE(table.intern({{"model.py", 2, "f", "x"}}) == one);
}

}  // namespace
}  // namespace assay::graph
