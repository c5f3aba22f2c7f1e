// Each pass on a minimal graph: what it proposes, in which order.
#include <ATen/ops/ones.h>

#include <stdexcept>

#include "reduce/inputs.h"
#include "reduce/pass.h"
#include "reduce_fixture.h"

namespace assay::reduce {
namespace {

const char* const kX = "x: \"f32[4][1]cpu\"";
const char* const kXY = "x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"";

class PassesTest : public ReduceTest {
 protected:
  Candidate chain() {
    return load_with_values(
        class_text(kX, {"a = torch.sin(x)", "b = torch.cos(a)", "c = torch.relu(b)",
                        "d = torch.tanh(c)", "return (d,)"}));
  }

  static Pass pass(const std::string& name) {
    const std::vector<Pass> found = choose_passes({name});
    if (found.size() != 1) throw std::invalid_argument("no pass is called " + name);
    return found[0];
  }

  // The calls that each proposal keeps.
  std::vector<std::string> kept_calls(const Pass& pass, const Candidate& program) {
    std::vector<std::string> found;
    for (const Candidate& proposal : proposals(pass, program)) {
      std::string names;
      for (const graph::Node& node : proposal.graph->nodes()) {
        if (node.is_call()) names += node.name();
      }
      found.push_back(names);
    }
    return found;
  }
};

TEST_F(PassesTest, NamesAreUniqueAndDescribed) {
  std::set<std::string_view> names;
  for (const Pass& pass : all_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.description.empty()) << pass.name;
  }
  EXPECT_EQ(choose_passes({}).size(), names.size());
  const auto chosen = choose_passes({"shapes", "calls"});
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[0].name, "calls") << "in the order of the table";
}

TEST_F(PassesTest, AGraphWithoutCallsHasFewProposals) {
  Candidate program = load_with_values(class_text(kX, {"return (x,)"}));
  for (const Pass& pass : all_passes()) {
    ASSERT_LT(pass.rounds(program), 100U) << pass.name;
    proposals(pass, program);
  }
}

TEST_F(PassesTest, Suspects) {
  Candidate program = chain();
  EXPECT_TRUE(proposals(pass("suspects"), program).empty());
  program.suspects = {"c", "gone", "a"};
  EXPECT_EQ(kept_calls(pass("suspects"), program), (Lines{"c", "a"}));
  program.suspects = {"a", "b", "c", "gone", "gone too"};
  EXPECT_EQ(kept_calls(pass("suspects"), program), (Lines{"abc"})) << "many at once";
}

TEST_F(PassesTest, Distinct) {
  EXPECT_TRUE(proposals(pass("distinct"), chain()).empty()) << "little to gain";
  const Candidate program =
      load_with_values(class_text(kX, {"a = torch.sin(x)", "b = torch.relu(a)", "c = torch.sin(b)",
                                       "d = torch.relu(c)", "return (d,)"}));
  EXPECT_EQ(kept_calls(pass("distinct"), program), (Lines{"ab", "cd"}));
}

TEST_F(PassesTest, SuffixAndPrefixHalveTheCalls) {
  EXPECT_EQ(kept_calls(pass("suffix"), chain()), (Lines{"ab", "abc"}));
  EXPECT_EQ(kept_calls(pass("prefix"), chain()), (Lines{"cd", "bcd"}));
}

TEST_F(PassesTest, DeltaDebuggingEndsWithSingleCalls) {
  const Candidate program = chain();
  const auto kept = kept_calls(pass("calls"), program);
  ASSERT_GE(kept.size(), 4U);
  EXPECT_EQ(Lines(kept.end() - 4, kept.end()), (Lines{"abc", "abd", "acd", "bcd"}));
}

TEST_F(PassesTest, DivergenceKeepsTheEnds) {
  Candidate program = chain();
  EXPECT_TRUE(proposals(pass("divergence"), program).empty()) << "nobody knows where it begins";
  program.ends = Ends{{{"b", "values"}}, ""};
  EXPECT_EQ(kept_calls(pass("divergence"), program), (Lines{"b", "ab"}));
  program.ends = Ends{{{"a", "dtype"}}, "d"};
  const auto found = proposals(pass("divergence"), program);
  ASSERT_GE(found.size(), 3U);
  EXPECT_EQ(lines_of(found[0]),
            (Lines{"x", "a = torch.sin(x)", "d = torch.tanh(a)", "return (d,)"}));
  EXPECT_EQ(found[0].values, nullptr) << "they are no longer eager's";
  EXPECT_EQ(count_calls(*found[1].graph), 4U) << "all between the ends";
  EXPECT_EQ(lines_of(found[2]), (Lines{"c", "d = torch.tanh(c)", "return (d,)"}));
}

TEST_F(PassesTest, DivergenceJoinsTensorsOfOtherSizesAndDtypes) {
  Candidate program = load_with_values(
      class_text("x: \"f32[4, 6][6, 1]cpu\", w: \"f32[6, 2][2, 1]cpu\"",
                 {"a = torch.cumsum(x, 0)", "b = torch.argsort(a)", "c = torch.sum(b, 0)",
                  "d = torch.cat([c, c, c])", "e = d.view(3, 6)", "f = e.to(torch.float32)",
                  "g = torch.mm(f, w)", "return (g,)"}));
  program.ends = Ends{{{"b", "integers"}}, "g"};
  const auto found = proposals(pass("divergence"), program);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(lines_of(found[0]),
            (Lines{"w, a", "b = torch.argsort(a)",
                   "getitem = b[(slice(None, 3, None), slice(None, None, None))]",
                   "to = getitem.to(torch.float32)", "g = torch.mm(to, w)", "return (g,)"}));
}

TEST_F(PassesTest, BypassLetsAValueThrough) {
  const Candidate program = load_with_values(
      class_text(kXY, {"a = torch.sin(x)", "b = a + y", "c = torch.neg(b)", "return (c,)"}));
  std::vector<Lines> found;
  for (const Candidate& proposal : proposals(pass("bypass"), program)) {
    found.push_back(lines_of(proposal));
    EXPECT_EQ(proposal.values, nullptr) << "they are no longer eager's";
  }
  const auto has = [&](const Lines& lines) {
    return std::ranges::find(found, lines) != found.end();
  };
  EXPECT_TRUE(has({"x, y", "a = torch.sin(x)", "b = a + y", "return (b,)"})) << "without c";
  EXPECT_TRUE(has({"x", "a = torch.sin(x)", "c = torch.neg(a)", "return (c,)"})) << "without b";
  EXPECT_TRUE(has({"y", "c = torch.neg(y)", "return (c,)"})) << "b's other operand";
  EXPECT_TRUE(has({"x, y", "b = x + y", "c = torch.neg(b)", "return (c,)"})) << "without a";
}

TEST_F(PassesTest, BypassMakesOperandsFit) {
  const Candidate program = load_with_values(
      class_text("x: \"f32[4, 6][6, 1]cpu\"",
                 {"a = torch.softmax(x, 1)", "b = torch.sum(a, 1)", "c = torch.stack([b, b])",
                  "d = torch.sigmoid(c)", "return (d,)"}));
  std::set<std::string> bridges;
  for (const Candidate& proposal : proposals(pass("bypass"), program)) {
    for (const std::string& line : lines_of(proposal)) {
      const bool is_bridge = line.starts_with("getitem") || line.starts_with("expand");
      if (is_bridge) bridges.insert(line.substr(line.find("= ") + 2));
    }
  }
  EXPECT_TRUE(bridges.contains("b.expand([2, 4])")) << "instead of stack";
  EXPECT_TRUE(bridges.contains("a[(0, slice(None, 4, None))]")) << "instead of sum";
}

TEST_F(PassesTest, Outputs) {
  const Candidate program = load_with_values(class_text(
      kX, {"a = torch.sin(x)", "b = torch.cos(x)", "c = torch.relu(a)", "return (a, b, c)"}));
  std::vector<std::string> results;
  for (const Candidate& proposal : proposals(pass("outputs"), program)) {
    results.push_back(lines_of(proposal).back());
  }
  EXPECT_EQ(results, (Lines{"return (a,)", "return (b,)", "return (c,)", "return (b, c)",
                            "return (a, c)", "return (a, b)"}));
  EXPECT_EQ(lines_of(proposals(pass("outputs"), program)[1]),
            (Lines{"x", "b = torch.cos(x)", "return (b,)"}));
}

TEST_F(PassesTest, InputsThatNobodyReads) {
  const Candidate program = load(class_text(kXY, {"a = torch.sin(y)", "return (a,)"}));
  const auto found = proposals(pass("inputs"), program);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(lines_of(found[0]), (Lines{"y", "a = torch.sin(y)", "return (a,)"}));
}

TEST_F(PassesTest, IntegersBecomeNumbersInTheText) {
  Candidate program = load(class_text("n, " + std::string(kX), {"a = x * n", "return (a,)"}) +
                           "def load_args(reader):\n"
                           "    reader.symint(3)\n"
                           "    buf0 = reader.storage(None, 16)\n"
                           "    reader.tensor(buf0, (4,), is_leaf=True)\n"
                           "load_args._version = 0\n");
  ASSERT_EQ(program.inputs.size(), 2U);
  const auto found = proposals(pass("inputs"), program);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(lines_of(found[0]), (Lines{"x", "a = x * 3", "return (a,)"}));
}

const std::string kBody =
    class_text("z", {"s = torch.sin(z)", "t = torch.cos(s)", "return (s, t)"}, {}, "body");

TEST_F(PassesTest, SubgraphsOfInvokeSubgraph) {
  const Candidate program = load_with_values(
      kBody +
      class_text(kX,
                 {"body = self.body", "call = torch.ops.higher_order.invoke_subgraph(body, 'b', x)",
                  "first = call[0]", "second = call[1]", "add = first + second", "return (add,)"},
                 {"self.body = body()"}));
  const auto found = proposals(pass("subgraphs"), program);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(lines_of(found[0]),
            (Lines{"x", "s = torch.sin(x)", "t = torch.cos(s)", "add = s + t", "return (add,)"}));
  EXPECT_TRUE(found[0].graph->attributes().empty());
}

TEST_F(PassesTest, SubgraphsOfCond) {
  const Candidate program = load_with_values(
      kBody +
      class_text("z", {"u = torch.tanh(z)", "v = torch.relu(z)", "return (u, v)"}, {}, "other") +
      class_text("p: \"b8[][]cpu\", x: \"f32[4][1]cpu\"",
                 {"body = self.body", "other = self.other",
                  "call = torch.ops.higher_order.cond(p, body, other, (x,))", "first = call[0]",
                  "return (first,)"},
                 {"self.body = body()", "self.other = other()"}));
  const auto found = proposals(pass("subgraphs"), program);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(lines_of(found[0]), (Lines{"x", "s = torch.sin(x)", "return (s,)"}));
  EXPECT_EQ(lines_of(found[1]), (Lines{"x", "u = torch.tanh(x)", "return (u,)"}));
}

TEST_F(PassesTest, Operands) {
  const Candidate program = load(class_text(std::string(kXY) + ", z: \"f32[2][1]cpu\"",
                                            {"a = x + y", "b = z * 2", "return (a, b)"}));
  const auto found = proposals(pass("operands"), program);
  ASSERT_EQ(found.size(), 1U) << "z has another size";
  EXPECT_EQ(lines_of(found[0]), (Lines{"x, z", "a = x + x", "b = z * 2", "return (a, b)"}));
}

TEST_F(PassesTest, Operators) {
  const Candidate program = load_with_values(
      class_text(kX, {"a = torch.sin(x)", "b = torch.sum(a)", "c = torch.neg(b)", "return (c,)"}));
  const auto found = proposals(pass("operators"), program);
  ASSERT_EQ(found.size(), 1U) << "the sum has another size, neg is cheap already";
  EXPECT_EQ(lines_of(found[0])[1], "neg = torch.neg(x)");
  EXPECT_EQ(lines_of(found[0])[2], "b = torch.sum(neg)");
}

TEST_F(PassesTest, Shapes) {
  const Candidate program = load(class_text("x: \"f32[2, 8][8, 1]cpu\"",
                                            {"a = x.view(16)", "b = a.view(8, 2)", "return (b,)"}));
  std::set<std::string> texts;
  for (const Candidate& proposal : proposals(pass("shapes"), program)) {
    EXPECT_LT(count_elements(proposal), count_elements(program));
    const Lines lines = lines_of(proposal);
    texts.insert(lines[1] + "; " + lines[2]);
  }
  EXPECT_TRUE(texts.contains("a = x.view(2); b = a.view(1, 2)")) << "8 and its multiples";
  EXPECT_TRUE(texts.contains("a = x.view(16); b = a.view(1, 2)")) << "8 alone";
  EXPECT_TRUE(texts.contains("a = x.view(16); b = a.view(8, 2)")) << "a dimension of the input";
}

TEST_F(PassesTest, ShrunkInputsKeepTheBeginningOfTheirContents) {
  const Candidate program =
      load(class_text("x: \"f32[4, 6][6, 1]cpu\"", {"a = x + 1", "return (a,)"}));
  const at::Tensor x = input_contents(program, 0, workspace_->store());
  for (const Candidate& proposal : proposals(pass("shapes"), program)) {
    const at::Tensor smaller = input_contents(proposal, 0, workspace_->store());
    EXPECT_TRUE(smaller.equal(x.narrow(0, 0, smaller.size(0)).narrow(1, 0, smaller.size(1))));
  }
}

TEST_F(PassesTest, Dtypes) {
  const Candidate program =
      load(class_text("x: \"f64[4][1]cpu\", i: \"i64[4][1]cpu\"",
                      {"a = x + i", "b = a.to(torch.float64)", "return (b,)"}));
  const auto found = proposals(pass("dtypes"), program);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(tensor_of(found[0], 0).meta.dtype, c10::ScalarType::Float);
  EXPECT_EQ(tensor_of(found[0], 1).meta.dtype, c10::ScalarType::Long);
  EXPECT_EQ(lines_of(found[0])[2], "b = a.to(torch.float32)");
}

TEST_F(PassesTest, Arguments) {
  const Candidate program = load(class_text(
      kX, {"a = torch.sum(x, 3, keepdim=True)", "b = torch.clamp(a, 0.5)", "return (b,)"}));
  // Which of the two calls is another one, and what it is then.
  const Lines before = lines_of(program);
  Lines changed;
  for (const Candidate& proposal : proposals(pass("arguments"), program)) {
    const Lines lines = lines_of(proposal);
    changed.push_back(lines[1] == before[1] ? lines[2] : lines[1]);
  }
  EXPECT_EQ(changed,
            (Lines{"a = torch.sum(x, 3)", "a = torch.sum(x, 3, keepdim = False)",
                   "a = torch.sum(x, keepdim = True)", "a = torch.sum(x, 0, keepdim = True)",
                   "a = torch.sum(x, 1, keepdim = True)", "b = torch.clamp(a)",
                   "b = torch.clamp(a, 0.0)", "b = torch.clamp(a, 1.0)"}));
}

TEST_F(PassesTest, Strides) {
  Candidate program =
      load(class_text("x, y", {"a = x + y", "return (a,)"}) +
           "def load_args(reader):\n"
           "    buf0 = reader.storage(None, 64)\n"
           "    reader.tensor(buf0, (2, 3), (1, 4), requires_grad=True, is_leaf=False)\n"
           "    reader.tensor(buf0, (2, 3), storage_offset=2, is_leaf=True)\n"
           "load_args._version = 0\n");
  const at::Tensor x = input_contents(program, 0, workspace_->store());
  const auto found = proposals(pass("strides"), program);
  ASSERT_GE(found.size(), 5U);
  const Candidate& all = found[0];
  EXPECT_EQ(all.storages.size(), 2U) << "each has a storage of its own";
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(tensor_of(all, i).meta.strides, (std::vector<graph::SizeExpr>{3, 1}));
    EXPECT_EQ(tensor_of(all, i).storage_offset, graph::SizeExpr(0));
  }
  EXPECT_TRUE(input_contents(all, 0, workspace_->store()).equal(x));
  EXPECT_TRUE(tensor_of(all, 0).meta.requires_grad) << "one property at a time";
  EXPECT_FALSE(tensor_of(found.back(), 0).meta.requires_grad);
  EXPECT_TRUE(
      proposals(pass("strides"), load(class_text(kX, {"a = x + 1", "return (a,)"}))).empty());
}

TEST_F(PassesTest, Simplest) {
  const Candidate program =
      load(class_text("x: \"f32[2, 8][1, 2]cpu\", i: \"i64[0, 8][8, 1]cpu\"",
                      {"a = x.expand(3, 2, 8)", "b = torch.sum(a, 2)", "return (b, i)"}));
  const auto found = proposals(pass("simplest"), program);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(sizes_of(tensor_of(found[0], 0)), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(sizes_of(tensor_of(found[0], 1)), (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(found[0].storages[0].hash.empty());
  EXPECT_EQ(lines_of(found[0])[1], "a = x.expand(3, 1, 1)");
  EXPECT_TRUE(proposals(pass("simplest"), found[0]).empty());
}

TEST_F(PassesTest, Values) {
  const Candidate program = load(class_text(kXY, {"a = x + y", "return (a,)"}));
  const auto found = proposals(pass("values"), program);
  ASSERT_EQ(found.size(), 5U);  // both, each made up, each ones
  EXPECT_TRUE(found[0].storages[0].hash.empty() && found[0].storages[1].hash.empty());
  EXPECT_TRUE(found[1].storages[0].hash.empty() && !found[1].storages[1].hash.empty());
  EXPECT_TRUE(input_contents(found[3], 0, workspace_->store()).equal(at::ones({4})));
  EXPECT_TRUE(proposals(pass("values"), found[0]).empty()) << "nothing is left to make up";
}

}  // namespace
}  // namespace assay::reduce
