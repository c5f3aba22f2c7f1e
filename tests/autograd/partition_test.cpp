#include "autograd/partition.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "assay/error.h"
#include "aten/runner.h"
#include "autograd/flow_network.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "graph/verify.h"

namespace assay::autograd {
namespace {

using Names = std::vector<std::string>;
using Partitioner = Partition (*)(const graph::Graph&, std::size_t);

constexpr Partitioner kPartitioners[] = {partition_default, partition_min_cut};

// A joint graph from its parameters, each with an annotation, and its body.
std::unique_ptr<graph::Graph> joint_of(const std::string& parameters, const std::string& body,
                                       const std::string& constructor = "") {
  return graph::parse("class Repro(torch.nn.Module):\n" + constructor + "    def forward(self, " +
                          parameters + "):\n" + body,
                      "joint.py");
}

// A line of a body: `name = torch.ops.aten.<callee>(<arguments>)`.
std::string line(const std::string& name, const char* callee, const std::string& arguments) {
  std::string text = "        ";
  return text.append(name)
             .append(" = torch.ops.aten.")
             .append(callee)
             .append("(")
             .append(arguments) +
         ")\n";
}

void seed() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(7);
}

std::vector<aten::Value> inputs_for(const graph::Graph& graph) {
  seed();
  std::vector<aten::Value> inputs;
  for (const graph::Node* placeholder : graph.placeholders()) {
    const graph::TensorMeta* meta = placeholder->meta.value.tensor();
    if (meta == nullptr) {
      inputs.emplace_back(c10::IValue(std::int64_t{3}));
      continue;
    }
    std::vector<std::int64_t> sizes;
    for (const auto& size : meta->sizes) sizes.push_back(size.constant().value_or(3));
    const bool is_floating = c10::isFloatingType(meta->dtype);
    const at::Tensor values = is_floating ? at::randn(sizes) : at::randint(0, 2, sizes);
    inputs.emplace_back(c10::IValue(values.to(meta->dtype)));
  }
  return inputs;
}

// The metadata that annotations leave out, e.g. of calls.
std::unique_ptr<graph::Graph> with_metadata(std::unique_ptr<graph::Graph> joint) {
  aten::propagate_metadata(*joint, inputs_for(*joint));
  return joint;
}

std::vector<aten::Value> run(const graph::Graph& graph, std::vector<aten::Value> inputs) {
  return aten::unpack(aten::GraphRunner(graph).run(std::move(inputs)));
}

void expect_same(const aten::Value& got, const aten::Value& expected) {
  ASSERT_EQ(got.is_tensor(), expected.is_tensor());
  if (!expected.is_tensor()) {
    EXPECT_EQ(got.is_none(), expected.is_none());
    return;
  }
  const at::Tensor& left = got.leaf.toTensor();
  const at::Tensor& right = expected.leaf.toTensor();
  EXPECT_EQ(left.scalar_type(), right.scalar_type());
  EXPECT_TRUE(left.equal(right)) << left << "\n" << right;
}

// The halves are sound, have the form that is promised, and compute what the joint graph does.
void expect_equivalent(const graph::Graph& joint, std::size_t forward_outputs,
                       const Partition& partition) {
  for (const graph::Graph* half : {partition.forward.get(), partition.backward.get()}) {
    EXPECT_EQ(graph::find_problems(*half), Names()) << graph::print(*half);
  }
  Names primals;
  Names backward_inputs = partition.saved;
  for (const graph::Node* node : joint.placeholders()) {
    (node->name().starts_with("tangents_") ? backward_inputs : primals).push_back(node->name());
  }
  const auto names = [](const graph::Graph& graph) {
    Names result;
    for (const graph::Node* node : graph.placeholders()) result.push_back(node->name());
    return result;
  };
  EXPECT_EQ(names(*partition.forward), primals);
  EXPECT_EQ(names(*partition.backward), backward_inputs);
  for (const std::string& name : partition.saved) {
    EXPECT_FALSE(partition.backward->find(name)->users().empty()) << name;
    EXPECT_EQ(joint.find(name)->meta.value, partition.backward->find(name)->meta.value);
  }

  const std::vector<aten::Value> inputs = inputs_for(joint);
  const auto middle = inputs.begin() + static_cast<std::ptrdiff_t>(primals.size());
  seed();
  const auto expected = run(joint, inputs);
  seed();
  auto got = run(*partition.forward, {inputs.begin(), middle});
  ASSERT_EQ(got.size(), forward_outputs + partition.saved.size());
  const auto saved = got.begin() + static_cast<std::ptrdiff_t>(forward_outputs);
  std::vector<aten::Value> backward(saved, got.end());
  backward.insert(backward.end(), middle, inputs.end());
  got.erase(saved, got.end());
  for (aten::Value& gradient : run(*partition.backward, backward)) {
    got.push_back(std::move(gradient));
  }
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) expect_same(got[i], expected[i]);
}

Partition checked(Partitioner partitioner, const graph::Graph& joint, std::size_t outputs) {
  Partition partition = partitioner(joint, outputs);
  expect_equivalent(joint, outputs, partition);
  const Partition again = partitioner(joint, outputs);
  EXPECT_EQ(graph::print(*partition.forward), graph::print(*again.forward));
  EXPECT_EQ(graph::print(*partition.backward), graph::print(*again.backward));
  return partition;
}

// What both halves call.
std::set<std::string> recomputed(const Partition& partition) {
  std::set<std::string> names;
  for (const graph::Node& node : partition.backward->nodes()) {
    if (node.is_call() && partition.forward->find(node.name())) names.insert(node.name());
  }
  return names;
}

std::string error_of(const graph::Graph& joint, std::size_t outputs) {
  try {
    partition_min_cut(joint, outputs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// Two layers, as stock PyTorch prints them: relu(x @ w1) @ w2.
std::unique_ptr<graph::Graph> two_layers() {
  return with_metadata(
      joint_of("primals_1: \"f32[4, 8][8, 1]cpu\", primals_2: \"f32[8, 8][8, 1]cpu\", "
               "primals_3: \"f32[8, 2][2, 1]cpu\", tangents_1: \"f32[4, 2][2, 1]cpu\"",
               "        mm = torch.ops.aten.mm.default(primals_1, primals_2)\n"
               "        relu = torch.ops.aten.relu.default(mm)\n"
               "        mm_1 = torch.ops.aten.mm.default(relu, primals_3)\n"
               "        permute = torch.ops.aten.permute.default(relu, [1, 0])\n"
               "        mm_2 = torch.ops.aten.mm.default(permute, tangents_1)\n"
               "        permute_1 = torch.ops.aten.permute.default(primals_3, [1, 0])\n"
               "        mm_3 = torch.ops.aten.mm.default(tangents_1, permute_1)\n"
               "        le = torch.ops.aten.le.Scalar(relu, 0)\n"
               "        zero = torch.ops.aten.full.default([], 0.0)\n"
               "        where = torch.ops.aten.where.self(le, zero, mm_3)\n"
               "        permute_2 = torch.ops.aten.permute.default(primals_1, [1, 0])\n"
               "        mm_4 = torch.ops.aten.mm.default(permute_2, where)\n"
               "        return [mm_1, None, mm_4, mm_2]\n"));
}

TEST(Partition, TwoLayersSaveTheirInputsAndActivations) {
  const auto joint = two_layers();
  for (const Partitioner partitioner : kPartitioners) {
    const Partition partition = checked(partitioner, *joint, 1);
    EXPECT_EQ(partition.saved, (Names{"primals_1", "primals_3", "relu"}));
    EXPECT_EQ(partition.saved_bytes, 4U * (32 + 16 + 32));
    EXPECT_EQ(partition.saved_bytes_new, 4U * 32);
    EXPECT_EQ(recomputed(partition), std::set<std::string>());
  }
}

// A chain of cheap calls is computed again from its input, eagerly it would save every link.
TEST(Partition, MinCutRecomputesCheapCalls) {
  const auto joint =
      with_metadata(joint_of("primals_1: \"f32[16][1]cpu\", tangents_1: \"f32[16][1]cpu\"",
                             "        sin = torch.ops.aten.sin.default(primals_1)\n"
                             "        exp = torch.ops.aten.exp.default(sin)\n"
                             "        tanh = torch.ops.aten.tanh.default(exp)\n"
                             "        mul = torch.ops.aten.mul.Tensor(tangents_1, tanh)\n"
                             "        mul_1 = torch.ops.aten.mul.Tensor(mul, exp)\n"
                             "        cos = torch.ops.aten.cos.default(primals_1)\n"
                             "        mul_2 = torch.ops.aten.mul.Tensor(mul_1, cos)\n"
                             "        return (tanh, mul_2)\n"));
  const Partition simple = checked(partition_default, *joint, 1);
  EXPECT_EQ(simple.saved, (Names{"primals_1", "exp", "tanh"}));
  EXPECT_EQ(simple.saved_bytes_new, 64U);  // tanh is a forward output
  EXPECT_EQ(simple.forward->find("cos"), nullptr);
  const Partition cut = checked(partition_min_cut, *joint, 1);
  EXPECT_EQ(cut.saved, (Names{"primals_1"}));
  EXPECT_EQ(recomputed(cut), (std::set<std::string>{"sin", "exp", "tanh"}));
}

TEST(Partition, AMaskIsSavedInPlaceOfWhatItWasMadeOf) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[8, 8][8, 1]cpu\", primals_2: \"f32[8, 8][8, 1]cpu\", "
               "tangents_1: \"f32[8, 8][8, 1]cpu\"",
               "        mm = torch.ops.aten.mm.default(primals_1, primals_2)\n"
               "        relu = torch.ops.aten.relu.default(mm)\n"
               "        sum_1 = torch.ops.aten.sum.default(relu)\n"
               "        le = torch.ops.aten.le.Scalar(relu, 0)\n"
               "        zero = torch.ops.aten.full.default([], 0.0)\n"
               "        where = torch.ops.aten.where.self(le, zero, tangents_1)\n"
               "        return (sum_1, where)\n"));
  EXPECT_EQ(checked(partition_default, *joint, 1).saved, (Names{"relu"}));
  const Partition cut = checked(partition_min_cut, *joint, 1);
  EXPECT_EQ(cut.saved, (Names{"le"}));
  EXPECT_EQ(cut.saved_bytes, 64U);
  EXPECT_NE(cut.forward->find("le"), nullptr);
}

// Items are saved, the tuple never; an item that only backward uses comes with the forward's call.
TEST(Partition, ItemsOfACallWithSeveralResults) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[4, 8][8, 1]cpu\", tangents_1: \"f32[4, 8][8, 1]cpu\"",
               "        norm = torch.ops.aten.native_layer_norm.default(primals_1, [8], None, "
               "None, 1e-05)\n"
               "        getitem = norm[0]\n"
               "        getitem_1 = norm[1]\n"
               "        getitem_2 = norm[2]\n"
               "        back = torch.ops.aten.native_layer_norm_backward.default(tangents_1, "
               "primals_1, [8], getitem_1, getitem_2, None, None, [True, False, False])\n"
               "        getitem_3 = back[0]\n"
               "        return (getitem, getitem_3)\n"));
  for (const Partitioner partitioner : kPartitioners) {
    const Partition partition = checked(partitioner, *joint, 1);
    EXPECT_EQ(partition.saved, (Names{"primals_1", "getitem_1", "getitem_2"}));
    EXPECT_EQ(recomputed(partition), std::set<std::string>());
  }
}

TEST(Partition, RandomNumbersAndExpensiveCallsAreNeverRepeated) {
  const auto joint = with_metadata(joint_of(
      "primals_1: \"f32[1, 2, 4, 8][64, 32, 8, 1]cpu\", primals_2: \"f32[2, 2, 3, 3][18, 9, 3, "
      "1]cpu\", tangents_1: \"f32[1, 2, 4, 8][64, 32, 8, 1]cpu\"",
      "        drop = torch.ops.aten.native_dropout.default(primals_1, 0.5, True)\n"
      "        getitem = drop[0]\n"
      "        mask = drop[1]\n"
      "        conv = torch.ops.aten.convolution.default(getitem, primals_2, None, [1, 1], [1, 1], "
      "[1, 1], False, [0, 0], 1)\n"
      "        attention = "
      "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(conv, "
      "conv, conv)\n"
      "        getitem_1 = attention[0]\n"
      "        exp = torch.ops.aten.exp.default(getitem_1)\n"
      "        sum_1 = torch.ops.aten.sum.dim_IntList(exp, [3], True)\n"
      "        mul = torch.ops.aten.mul.Tensor(tangents_1, exp)\n"
      "        mul_1 = torch.ops.aten.mul.Tensor(mul, conv)\n"
      "        mul_2 = torch.ops.aten.mul.Tensor(mul_1, mask)\n"
      "        mul_3 = torch.ops.aten.mul.Tensor(mul_2, getitem)\n"
      "        return (sum_1, mul_3, None)\n"));
  for (const Partitioner partitioner : kPartitioners) {
    const Partition partition = checked(partitioner, *joint, 1);
    for (const char* name : {"drop", "conv", "attention"}) {
      const graph::Node* node = partition.backward->find(name);
      EXPECT_TRUE(node == nullptr || !node->is_call()) << name;
    }
    EXPECT_TRUE(std::ranges::count(partition.saved, "conv"));
    EXPECT_TRUE(std::ranges::count(partition.saved, "mask"));
  }
}

// A residual stream: were the sums recomputed, each would need all before it.
TEST(Partition, ResidualSumsAreSaved) {
  std::string body =
      "        mm = torch.ops.aten.mm.default(primals_1, primals_2)\n"
      "        add = torch.ops.aten.add.Tensor(mm, 1.0)\n";
  std::string gradient = "tangents_1";
  std::string previous = "add";
  Names sums;
  for (const std::string n : {"1", "2", "3"}) {
    body += line("sin_" + n, "sin.default", previous);
    body += line("mm_" + n, "mm.default", "sin_" + n + ", primals_2");
    previous += ", mm_" + n;
    body += line("add_" + n, "add.Tensor", previous);
    previous = "add_" + n;
    sums.push_back(previous);
  }
  for (const std::string n : {"3", "2", "1"}) {
    body += line("cos_" + n, "cos.default", "add_" + n);
    gradient += ", cos_" + n;
    body += line("mul_" + n, "mul.Tensor", gradient);
    gradient = "mul_" + n;
  }
  body += line("sum_1", "sum.default", previous);
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[4, 4][4, 1]cpu\", primals_2: \"f32[4, 4][4, 1]cpu\", "
               "tangents_1: \"f32[4, 4][4, 1]cpu\"",
               body + "        return (sum_1, " + gradient + ", None)\n"));
  const Partition cut = checked(partition_min_cut, *joint, 1);
  for (const std::string& sum : sums) EXPECT_FALSE(recomputed(cut).contains(sum)) << sum;
  EXPECT_EQ(cut.saved.size(), 3U);
}

TEST(Partition, AChainIsRecomputedUpToAHundredCalls) {
  std::string body;
  std::string previous = "primals_1";
  for (int i = 0; i < 150; ++i) {
    const std::string name = "sin_" + std::to_string(i);
    body += line(name, "sin.default", previous);
    previous = name;
  }
  body += line("sum_1", "sum.default", previous);
  body += line("mul", "mul.Tensor", "tangents_1, " + previous);
  body += line("mul_1", "mul.Tensor", "mul, sin_10");
  body += "        return (sum_1, mul_1)\n";
  const auto joint =
      with_metadata(joint_of("primals_1: \"f32[8][1]cpu\", tangents_1: \"f32[8][1]cpu\"", body));
  EXPECT_LE(recomputed(checked(partition_min_cut, *joint, 1)).size(), 101U);
}

// Views hold the memory of their base: it is saved, once, and they are made again.
TEST(Partition, ViewsAreRecomputedFromTheirBase) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[6, 6][6, 1]cpu\", primals_2: \"f32[6, 6][6, 1]cpu\", "
               "tangents_1: \"f32[6, 6][6, 1]cpu\"",
               "        mm = torch.ops.aten.mm.default(primals_1, primals_2)\n"
               "        split = torch.ops.aten.split.Tensor(mm, 2, 1)\n"
               "        getitem = split[0]\n"
               "        getitem_1 = split[1]\n"
               "        getitem_2 = split[2]\n"
               "        permute = torch.ops.aten.permute.default(mm, [1, 0])\n"
               "        mm_1 = torch.ops.aten.mm.default(permute, mm)\n"
               "        mm_2 = torch.ops.aten.mm.default(tangents_1, getitem)\n"
               "        mm_3 = torch.ops.aten.mm.default(tangents_1, getitem_1)\n"
               "        mm_4 = torch.ops.aten.mm.default(tangents_1, getitem_2)\n"
               "        cat = torch.ops.aten.cat.default([mm_2, mm_3, mm_4], 1)\n"
               "        mm_5 = torch.ops.aten.mm.default(cat, permute)\n"
               "        return (mm_1, mm_5, None)\n"));
  for (const Partitioner partitioner : kPartitioners) {
    EXPECT_EQ(checked(partitioner, *joint, 1).saved, (Names{"mm"}));
  }
}

TEST(Partition, APartIsSavedWhereBackwardNeedsNoMoreOfItsBase) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[6, 6][6, 1]cpu\", primals_2: \"f32[6, 6][6, 1]cpu\", "
               "tangents_1: \"f32[6, 6][6, 1]cpu\"",
               "        mm = torch.ops.aten.mm.default(primals_1, primals_2)\n"
               "        sum_1 = torch.ops.aten.sum.default(mm)\n"
               "        select = torch.ops.aten.select.int(mm, 0, 0)\n"
               "        mul = torch.ops.aten.mul.Tensor(tangents_1, select)\n"
               "        return (sum_1, mul, None)\n"));
  const Partition cut = checked(partition_min_cut, *joint, 1);
  EXPECT_EQ(cut.saved, (Names{"select"}));
  EXPECT_EQ(cut.saved_bytes, 4U * 6);
  EXPECT_EQ(cut.saved_bytes_new, 4U * 36);  // the view keeps all of mm alive
}

// What only gradients use: an expensive call runs once, in whichever half.
TEST(Partition, WhatOnlyGradientsUseIsComputedOnce) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[2, 64][64, 1]cpu\", primals_2: \"f32[64, 2][2, 1]cpu\", "
               "tangents_1: \"f32[2, 2][2, 1]cpu\"",
               "        sin = torch.ops.aten.sin.default(primals_1)\n"
               "        mm = torch.ops.aten.mm.default(sin, primals_2)\n"
               "        exp = torch.ops.aten.exp.default(mm)\n"
               "        mul = torch.ops.aten.mul.Tensor(tangents_1, exp)\n"
               "        mul_1 = torch.ops.aten.mul.Tensor(mul, mm)\n"
               "        return (sin, mul_1, None)\n"));
  const Partition simple = checked(partition_default, *joint, 1);
  EXPECT_EQ(simple.saved, (Names{"primals_2", "sin"}));
  EXPECT_EQ(simple.forward->find("mm"), nullptr);
  const Partition cut = checked(partition_min_cut, *joint, 1);
  EXPECT_EQ(cut.saved, (Names{"mm"}));
  EXPECT_EQ(cut.saved_bytes, 16U);
}

// The same node twice, None, a primal as output and as gradient, a tangent as gradient.
TEST(Partition, OddOutputs) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[4][1]cpu\", primals_2: \"f32[4][1]cpu\", "
               "tangents_1: \"f32[4][1]cpu\", tangents_2: \"f32[4][1]cpu\"",
               "        exp = torch.ops.aten.exp.default(primals_1)\n"
               "        return (exp, primals_1, exp, None, tangents_1, primals_2, exp, None)\n"));
  for (const Partitioner partitioner : kPartitioners) {
    const Partition partition = checked(partitioner, *joint, 4);
    EXPECT_EQ(partition.saved, (Names{"primals_2", "exp"}));
    EXPECT_EQ(partition.saved_bytes, 32U);
    EXPECT_EQ(partition.saved_bytes_new, 0U);
  }
}

TEST(Partition, WithoutGradientsNothingIsSaved) {
  const auto joint = with_metadata(joint_of(
      "primals_1: \"f32[4][1]cpu\"",
      "        exp = torch.ops.aten.exp.default(primals_1)\n        return (exp, None)\n"));
  for (const Partitioner partitioner : kPartitioners) {
    EXPECT_EQ(checked(partitioner, *joint, 1).saved, Names());
  }
}

TEST(Partition, AssertionsAndUnusedRandomNumbersStayInForward) {
  const auto joint =
      with_metadata(joint_of("primals_1: \"f32[4][1]cpu\", tangents_1: \"f32[4][1]cpu\"",
                             "        exp = torch.ops.aten.exp.default(primals_1)\n"
                             "        gt = torch.ops.aten.gt.Scalar(exp, 0)\n"
                             "        every = torch.ops.aten.all.default(gt)\n"
                             "        check = torch.ops.aten._assert_async.msg(every, 'positive')\n"
                             "        unused = torch.ops.aten.rand_like.default(primals_1)\n"
                             "        noise = torch.ops.aten.rand_like.default(primals_1)\n"
                             "        dead = torch.ops.aten.sin.default(primals_1)\n"
                             "        mul = torch.ops.aten.mul.Tensor(tangents_1, noise)\n"
                             "        return (exp, mul)\n"));
  for (const Partitioner partitioner : kPartitioners) {
    const Partition partition = checked(partitioner, *joint, 1);
    EXPECT_EQ(partition.saved, (Names{"noise"}));
    EXPECT_NE(partition.forward->find("check"), nullptr);
    EXPECT_NE(partition.forward->find("unused"), nullptr);
    EXPECT_EQ(partition.forward->find("dead"), nullptr);
    EXPECT_EQ(partition.backward->find("check"), nullptr);
  }
}

// Autograd's formulas repeat forward's calls; the values are the same and need saving once.
TEST(Partition, MinCutSeesEqualCalls) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[8, 8][8, 1]cpu\", tangents_1: \"f32[8, 8][8, 1]cpu\"",
               "        mm = torch.ops.aten.mm.default(primals_1, primals_1)\n"
               "        amax = torch.ops.aten.amax.default(mm, [1], True)\n"
               "        noise = torch.ops.aten.rand_like.default(amax)\n"
               "        add = torch.ops.aten.add.Tensor(amax, noise)\n"
               "        amax_1 = torch.ops.aten.amax.default(mm, [1], True)\n"
               "        mul = torch.ops.aten.mul.Tensor(tangents_1, amax_1)\n"
               "        return (add, mul)\n"));
  EXPECT_EQ(checked(partition_default, *joint, 1).saved, (Names{"mm"}));
  EXPECT_EQ(checked(partition_min_cut, *joint, 1).saved, (Names{"amax"}));
}

// Recomputed values are made where they are needed, not all at the start.
TEST(Partition, RecomputedCallsStandBeforeTheirUse) {
  const auto joint =
      with_metadata(joint_of("primals_1: \"f32[4][1]cpu\", tangents_1: \"f32[4][1]cpu\"",
                             "        sin = torch.ops.aten.sin.default(primals_1)\n"
                             "        exp = torch.ops.aten.exp.default(sin)\n"
                             "        sum_1 = torch.ops.aten.sum.default(exp)\n"
                             "        neg = torch.ops.aten.neg.default(tangents_1)\n"
                             "        mul = torch.ops.aten.mul.Tensor(neg, exp)\n"
                             "        return (sum_1, mul)\n"));
  const Partition cut = checked(partition_min_cut, *joint, 1);
  Names order;
  for (const graph::Node& node : cut.backward->nodes()) {
    if (node.is_call()) order.push_back(node.name());
  }
  EXPECT_EQ(order, (Names{"neg", "sin", "exp", "mul"}));
}

TEST(Partition, AttributesGoWhereTheyAreRead) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[3][1]cpu\", tangents_1: \"f32[3][1]cpu\"",
               "        constant = self.constant\n"
               "        noise = self.noise\n"
               "        mul = torch.ops.aten.mul.Tensor(primals_1, constant)\n"
               "        add = torch.ops.aten.add.Tensor(mul, noise)\n"
               "        mul_1 = torch.ops.aten.mul.Tensor(tangents_1, constant)\n"
               "        mul_2 = torch.ops.aten.mul.Tensor(mul_1, noise)\n"
               "        return (add, mul_2)\n",
               "    def __init__(self):\n"
               "        super().__init__()\n"
               "        self.constant = torch.tensor([1.0, 2.0, 3.0])\n"
               "        self.register_buffer('noise', torch.randn([3], dtype=torch.float32))\n"
               "        self.register_buffer('unused', torch.randn([3], dtype=torch.float32))\n"));
  for (const Partitioner partitioner : kPartitioners) {
    const Partition partition = partitioner(*joint, 1);
    EXPECT_EQ(partition.saved, (Names{"noise"}));  // two graphs would draw two
    EXPECT_EQ(partition.forward->attributes().size(), 2U);
    EXPECT_EQ(partition.backward->attributes().size(), 1U);
  }
}

TEST(Partition, IntegersAreSavedInPlaceOfTensors) {
  const auto joint = with_metadata(
      joint_of("primals_1: \"f32[4, 8][8, 1]cpu\", primals_2: \"f32[8, 8][8, 1]cpu\", "
               "tangents_1: \"f32[1, 8][8, 1]cpu\"",
               "        mm = torch.ops.aten.mm.default(primals_1, primals_2)\n"
               "        size = torch.ops.aten.sym_size.int(mm, 0)\n"
               "        sum_1 = torch.ops.aten.sum.dim_IntList(mm, [0], True)\n"
               "        expand = torch.ops.aten.expand.default(tangents_1, [size, 8])\n"
               "        return (sum_1, expand, None)\n"));
  const Partition cut = checked(partition_min_cut, *joint, 1);
  EXPECT_EQ(cut.saved, (Names{"size"}));
  EXPECT_EQ(cut.saved_bytes, 0U);
}

TEST(Partition, SymbolicSizesCountAs4096) {
  const auto graph =
      joint_of("primals_1: \"f16[s0, 3][3, 1]cpu\"", "        return (primals_1,)\n");
  EXPECT_EQ(value_bytes(*graph->find("primals_1")), 2U * 4096 * 3);
}

TEST(Partition, SaysWhatIsWrongWithTheGraph) {
  const auto joint = two_layers();
  EXPECT_EQ(error_of(*joint, 5), "the joint graph has 4 outputs, fewer than its 5 forward outputs");
  EXPECT_NE(error_of(*joint, 4).find("forward outputs of the joint graph depend on a tangent"),
            std::string::npos);
  const auto bare = joint_of("primals_1, tangents_1",
                             "        sin = torch.ops.aten.sin.default(primals_1)\n"
                             "        mul = torch.ops.aten.mul.Tensor(sin, tangents_1)\n"
                             "        return (sin, mul)\n");
  EXPECT_NE(error_of(*bare, 1).find("has no metadata"), std::string::npos);
  const auto single = joint_of("primals_1: \"f32[4][1]cpu\"", "        return primals_1\n");
  EXPECT_NE(error_of(*single, 1).find("must return a list or tuple"), std::string::npos);
}

TEST(FlowNetwork, FindsTheCutNearestToTheSink) {
  FlowNetwork network(5);
  network.add_pipe(FlowNetwork::source, 2, FlowNetwork::kUnlimited);
  network.add_pipe(2, 3, 7);
  network.add_pipe(3, 4, 7);
  network.add_pipe(4, FlowNetwork::sink, FlowNetwork::kUnlimited);
  const auto side = network.sink_side();
  ASSERT_TRUE(side);
  EXPECT_EQ(*side, (std::vector<bool>{false, true, false, false, true}));
  network.add_pipe(2, 4, FlowNetwork::kUnlimited);
  EXPECT_FALSE(network.sink_side());
}

}  // namespace
}  // namespace assay::autograd
