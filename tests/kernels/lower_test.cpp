// Views, extern calls, aliases and the order of steps; and what the verifier refuses.
#include "kernels/lower.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "aten/runner.h"
#include "graph/parse.h"
#include "kernels/index_range.h"
#include "kernels/print.h"
#include "kernels/verify.h"

namespace assay::kernels {
namespace {

LoopProgram lowered(const std::string& body, std::vector<at::Tensor> inputs) {
  std::string text = "class Repro(torch.nn.Module):\n    def forward(self";
  for (std::size_t i = 0; i < inputs.size(); ++i) text += std::string(", ") + "abc"[i];
  std::shared_ptr<graph::Graph> graph = graph::parse(text + "):\n" + body);
  std::vector<aten::Value> values(inputs.begin(), inputs.end());
  aten::propagate_metadata(*graph, values);
  LoopProgram program = lower(graph);
  verify(program);
  return program;
}

const TensorRef& output(const LoopProgram& program, std::size_t number = 0) {
  return std::get<TensorRef>(program.outputs.at(number));
}

TEST(Lower, ViewsAreReferencesIntoTheirBase) {
  const LoopProgram program = lowered(
      "        permute = torch.ops.aten.permute.default(a, [1, 0])\n"
      "        slice_1 = torch.ops.aten.slice.Tensor(permute, 0, 1, 6, 2)\n"
      "        select = torch.ops.aten.select.int(slice_1, 1, 2)\n"
      "        return (select,)\n",
      {at::zeros({4, 6})});
  EXPECT_TRUE(program.steps.empty());
  EXPECT_EQ(output(program).buffer, program.inputs[0]);
  EXPECT_EQ(output(program).offset, 13);
  EXPECT_EQ(output(program).sizes, Sizes({3}));
  EXPECT_EQ(output(program).strides, Sizes({2}));
}

// Offsets count from the input's first element, not from that of its storage.
TEST(Lower, ViewsOfAnInputWithAnOffset) {
  const LoopProgram program = lowered(
      "        select = torch.ops.aten.select.int(a, 0, 1)\n"
      "        return (select,)\n",
      {at::zeros({9, 6}).slice(0, 3)});
  EXPECT_EQ(output(program).offset, 6);
}

// A traced copy of an input has no offset, and neither have the views that were recorded.
TEST(Lower, ViewsThatWereTracedOnACopyOfTheInput) {
  std::shared_ptr<graph::Graph> graph = graph::parse(
      "class Repro(torch.nn.Module):\n"
      "    def forward(self, a: \"f32[6, 6][6, 1]cpu storage_offset=18\"):\n"
      "        s: \"f32[6][1]cpu storage_offset=6\" = torch.ops.aten.select.int(a, 0, 1)\n"
      "        t: \"f32[5][1]cpu storage_offset=7\" = torch.ops.aten.slice.Tensor(s, 0, 1)\n"
      "        return (s, t)\n");
  const LoopProgram program = lower(graph);
  EXPECT_EQ(output(program, 0).offset, 6);
  EXPECT_EQ(output(program, 1).offset, 7);
}

TEST(Lower, ItemsOfASplitAreViews) {
  const LoopProgram program = lowered(
      "        split = torch.ops.aten.split.Tensor(a, 2, 1)\n"
      "        first = split[0]\n"
      "        last = split[-1]\n"
      "        return (first, last)\n",
      {at::zeros({4, 6})});
  EXPECT_TRUE(program.steps.empty());
  EXPECT_EQ(output(program, 1).offset, 4);
}

TEST(Lower, ReshapeIsAViewOnlyWhereEagerMadeOne) {
  const std::string body =
      "        reshape = torch.ops.aten.reshape.default(a, [24])\n"
      "        return (reshape,)\n";
  EXPECT_TRUE(lowered(body, {at::zeros({4, 6})}).steps.empty());
  const LoopProgram copied = lowered(body, {at::zeros({6, 4}).t()});
  EXPECT_EQ(copied.steps.size(), 1);
  EXPECT_NE(output(copied).buffer, copied.inputs[0]);
}

// A view that reaches beyond its base's own elements is left to ATen, and keeps its base alive.
TEST(Lower, ViewsBeyondTheInputAreExtern) {
  const LoopProgram program = lowered(
      "        as_strided = torch.ops.aten.as_strided.default(a, [9], [1], 0)\n"
      "        return (as_strided,)\n",
      {at::zeros({9, 6}).slice(0, 3)});
  ASSERT_EQ(program.steps.size(), 1);
  const Buffer& buffer = program.buffers[output(program).buffer];
  EXPECT_EQ(buffer.kind, Buffer::Kind::result);
  EXPECT_EQ(buffer.aliases, std::vector<BufferId>{program.inputs[0]});
}

TEST(Lower, WritesStayInOrderAndNameTheirBuffers) {
  const LoopProgram program = lowered(
      "        exp = torch.ops.aten.exp.default(a)\n"
      "        relu_ = torch.ops.aten.relu_.default(a)\n"
      "        exp_1 = torch.ops.aten.exp.default(relu_)\n"
      "        return (exp, exp_1)\n",
      {at::randn({4})});
  ASSERT_EQ(program.steps.size(), 3);
  EXPECT_EQ(std::get<ExternCall>(program.steps[1]).writes,
            std::vector<BufferId>{program.inputs[0]});
}

TEST(Lower, CallsWithSeveralResults) {
  const LoopProgram program = lowered(
      "        sort = torch.ops.aten.sort.default(a)\n"
      "        values = sort[0]\n"
      "        neg = torch.ops.aten.neg.default(values)\n"
      "        return (neg, sort[1])\n",
      {at::randn({4})});
  ASSERT_EQ(program.steps.size(), 2);
  EXPECT_EQ(std::get<ExternCall>(program.steps[0]).results.size(), 2);
  EXPECT_EQ(std::get<ExternCall>(program.steps[0]).reason, "no lowering");
}

TEST(Lower, ComplexNumbersAreLeftToATen) {
  const LoopProgram program = lowered(
      "        conj = torch.ops.aten._conj.default(a)\n"
      "        mul = torch.ops.aten.mul.Tensor(conj, a)\n"
      "        view = torch.ops.aten.view_as_real.default(mul)\n"
      "        exp = torch.ops.aten.exp.default(view)\n"
      "        return (exp,)\n",
      {at::randn({4}, at::kComplexFloat)});
  ASSERT_EQ(program.steps.size(), 4);
  EXPECT_TRUE(std::holds_alternative<ExternCall>(program.steps[0]));
  EXPECT_TRUE(std::holds_alternative<Kernel>(program.steps[3]));
}

TEST(Lower, PrintsWhatItMade) {
  const LoopProgram program = lowered(
      "        add = torch.ops.aten.add.Tensor(a, b)\n"
      "        sum_1 = torch.ops.aten.sum.dim_IntList(add, [1])\n"
      "        mm = torch.ops.aten.mm.default(add, add)\n"
      "        return (sum_1, mm)\n",
      {at::zeros({2, 2}), at::zeros({2})});
  EXPECT_EQ(print(program), R"(Repro: 5 buffers, 3 steps

a: input f32[2, 2][2, 1]
b: input f32[2][1]
add: intermediate f32[2, 2][2, 1]
sum_1: intermediate f32[2][1]
mm: result f32[2, 2][2, 1]

add_0: Kernel(outer=[2, 2])
  nodes = add
  pass over one point
    v0 = load(a[2*i0 + i1]): f32
    v1 = load(b[i1]): f32
    v2 = add(v0, v1): f32
    store(add[2*i0 + i1], v2)

sum_1: Kernel(outer=[2])
  nodes = sum_1
  pass over [2]
    v0 = load(add[2*i0 + r0]): f32
    v1 = reduce_sum(v0): f32
  pass over one point
    store(sum_1[i0], v1)

mm: ExternCall(torch.ops.aten.mm.default)
  reason = no lowering
  reads = add[2, 2][2, 1] add[2, 2][2, 1]
  results = mm

outputs = sum_1[2][1] mm[2, 2][2, 1]
)");
}

class VerifyTest : public testing::Test {
 protected:
  LoopProgram program = lowered(
      "        add = torch.ops.aten.add.Tensor(a, b)\n"
      "        sum_1 = torch.ops.aten.sum.dim_IntList(add, [1])\n"
      "        return (sum_1,)\n",
      {at::zeros({2, 3}), at::zeros({3})});
  Kernel& kernel(std::size_t step) { return std::get<Kernel>(program.steps[step]); }
};

TEST_F(VerifyTest, RefusesAnIndexBeyondItsBuffer) {
  kernel(0).passes[0].body[0].index.offset = 1;
  EXPECT_THROW(verify(program), InternalError);
}

TEST_F(VerifyTest, RefusesAValueBeforeItsDefinition) {
  kernel(0).passes[0].body[2].operands[1] = 2;
  EXPECT_THROW(verify(program), InternalError);
}

TEST_F(VerifyTest, RefusesMixedDtypes) {
  kernel(0).passes[0].body[1].dtype = c10::ScalarType::Double;
  EXPECT_THROW(verify(program), InternalError);
}

TEST_F(VerifyTest, RefusesABufferThatIsNotWritten) {
  program.steps.erase(program.steps.begin());
  EXPECT_THROW(verify(program), InternalError);
}

TEST_F(VerifyTest, RefusesValuesOfInnerLoopsOutsideThem) {
  kernel(1).passes[1].body[0].operands[0] = 0;
  EXPECT_THROW(verify(program), InternalError);
}

TEST_F(VerifyTest, RefusesAReductionWithoutALoop) {
  kernel(1).passes[0].inner.clear();
  kernel(1).passes[0].body[0].index.coefficients.resize(1);
  EXPECT_THROW(verify(program), InternalError);
}

// The element that a window of size 3 and a padding of 1 reads, by rows of 5.
TEST(IndexRange, ConditionsOverSeveralLoops) {
  const Index row{-1, {1, 0, 1, 0}};
  const Index column{-1, {0, 1, 0, 1}};
  const Index element{-6, {5, 1, 5, 1}};
  const Sizes loops{5, 5, 3, 3};
  EXPECT_EQ(index_range(element, loops)->lower, -6);
  const auto range = index_range(element, loops, {{row, 0, 5}, {column, 0, 5}});
  EXPECT_EQ(range->lower, 0);
  EXPECT_EQ(range->upper, 24);
  EXPECT_FALSE(index_range(element, loops, {{row, 50, 60}}).has_value());
}

}  // namespace
}  // namespace assay::kernels
