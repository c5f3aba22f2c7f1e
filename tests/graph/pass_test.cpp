#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "assay/error.h"
#include "aten/facts.h"
#include "config/config.h"
#include "graph/parse.h"
#include "graph/pass_manager.h"
#include "graph/print.h"

namespace assay::graph {
namespace {

std::unique_ptr<Graph> graph_of(const std::string& parameters, const std::string& body) {
  return parse("class Repro(torch.nn.Module):\n    def forward(self, " + parameters + "):\n" +
               body);
}

std::vector<PassRecord> run_all(Graph& graph, const PassOptions& options) {
  Pipeline pipeline(options);
  for (const char* pass : {"dead_code", "common_subexpressions", "noops"}) {
    pipeline.run(pass, graph);
  }
  return pipeline.records();
}

std::string body_after(Graph& graph, const PassOptions& options = aten::pass_options()) {
  run_all(graph, options);
  PrintOptions plain;
  plain.metadata = plain.releases = false;
  const std::string text = print(graph, plain);
  return text.substr(text.find("):\n", text.find("def forward")) + 3);
}

TEST(Passes, DeadCodeGoesButEffectsStay) {
  const std::string effects =
      "        c = torch.ops.aten.add_.Tensor(x, 1)\n"
      "        d = torch.ops.aten.bernoulli.default(x)\n"
      "        e = torch.mystery(x)\n"
      // It updates the statistics, though its schema does not say so.
      "        f = torch.ops.aten.batch_norm.default(x, None, None, x, x, True, 0.1, 0.1, False)\n"
      "        return (x,)\n";
  auto graph = graph_of("x",
                        "        a = torch.ops.aten.sin.default(x)\n"
                        "        b = torch.ops.aten.cos.default(a)\n" +
                            effects);
  EXPECT_EQ(body_after(*graph), effects);
}

TEST(Passes, EqualExpressionsAreMerged) {
  auto graph = graph_of("x",
                        "        a = torch.ops.aten.sin.default(x)\n"
                        "        b = torch.ops.aten.sin.default(x)\n"
                        "        c = torch.ops.aten.add.Tensor(a, b)\n"
                        "        return (c,)\n");
  EXPECT_EQ(body_after(*graph),
            "        a = torch.ops.aten.sin.default(x)\n"
            "        c = torch.ops.aten.add.Tensor(a, a)\n"
            "        return (c,)\n");
}

TEST(Passes, NothingIsMergedAcrossAMutation) {
  const std::string body =
      "        a = torch.ops.aten.sin.default(x)\n"
      "        m = torch.ops.aten.add_.Tensor(x, 1)\n"
      "        b = torch.ops.aten.sin.default(x)\n"
      "        c = torch.ops.aten.add.Tensor(a, b)\n"
      "        return (c,)\n";
  auto graph = graph_of("x", body);
  EXPECT_EQ(body_after(*graph), body);
}

TEST(Passes, RandomNumbersInBetweenDoNotMatter) {
  auto graph = graph_of("x",
                        "        a = torch.ops.aten.sin.default(x)\n"
                        "        r = torch.ops.aten.bernoulli.default(x)\n"
                        "        s = torch.ops.aten.bernoulli.default(x)\n"
                        "        b = torch.ops.aten.sin.default(x)\n"
                        "        c = torch.ops.aten.add.Tensor(a, b)\n"
                        "        return (c, r, s)\n");
  EXPECT_EQ(body_after(*graph),
            "        a = torch.ops.aten.sin.default(x)\n"
            "        r = torch.ops.aten.bernoulli.default(x)\n"
            "        s = torch.ops.aten.bernoulli.default(x)\n"
            "        c = torch.ops.aten.add.Tensor(a, a)\n"
            "        return (c, r, s)\n");
}

TEST(Passes, NothingIsMergedAcrossAnUpdateOfStatistics) {
  const std::string body =
      "        a = torch.ops.aten.sin.default(m)\n"
      // It writes to m and v, though its schema does not say so.
      "        n = torch.ops.aten.native_batch_norm.default(x, None, None, m, v, True, 0.1, 0.1)\n"
      "        b = torch.ops.aten.sin.default(m)\n"
      "        c = torch.ops.aten.add.Tensor(a, b)\n"
      "        return (c,)\n";
  auto graph = graph_of("x, m, v", body);
  EXPECT_EQ(body_after(*graph), body);
}

TEST(Passes, AViewOfOneResultIsNotAViewOfAnother) {
  const std::string body =
      "        a = torch.ops.aten.sin.default(x)\n"
      "        b = torch.ops.aten.sin.default(x)\n"
      "        c = torch.ops.aten.t.default(b)\n"
      "        d = torch.ops.aten.detach.default(c)\n"
      "        return (a, d)\n";
  auto graph = graph_of("x", body);
  EXPECT_EQ(body_after(*graph), body);
}

TEST(Passes, TwoResultsStayTwoTensors) {
  const std::string body =
      "        a = torch.ops.aten.sin.default(x)\n"
      "        b = torch.ops.aten.sin.default(x)\n"
      "        return (a, b)\n";
  auto graph = graph_of("x", body);
  EXPECT_EQ(body_after(*graph), body);
}

TEST(Passes, ViewsThatChangeNothingGo) {
  auto graph = graph_of(
      "x: \"f32[4, 4]\"",
      "        a: \"f32[4, 4]\" = torch.ops.aten.view.default(x, [4, 4])\n"
      "        b: \"f32[4, 4]\" = torch.ops.aten.permute.default(a, [0, 1])\n"
      "        c: \"f32[4, 4][1, 4]\" = torch.ops.aten.permute.default(b, [1, 0])\n"
      "        d: \"f32[4, 4][1, 4]\" = torch.ops.aten.slice.Tensor(c, 0, 0, 9223372036854775807)\n"
      "        e = torch.ops.aten.relu.default(d)\n"
      "        return (e,)\n");
  EXPECT_EQ(body_after(*graph),
            "        c = torch.ops.aten.permute.default(x, [1, 0])\n"
            "        e = torch.ops.aten.relu.default(c)\n"
            "        return (e,)\n");
}

TEST(Passes, ASwitchTurnsOneOff) {
  auto graph = graph_of("x",
                        "        a = torch.ops.aten.sin.default(x)\n"
                        "        return (x,)\n");
  PassOptions options = aten::pass_options();
  options.disabled = {"dead_code"};
  const auto records = run_all(*graph, options);
  EXPECT_TRUE(records[0].was_disabled);
  EXPECT_EQ(graph->size(), 3U);
}

TEST(Passes, TheLimitStopsAtTheNthRewrite) {
  const std::string body =
      "        a = torch.ops.aten.sin.default(x)\n"
      "        b = torch.ops.aten.cos.default(x)\n"
      "        c = torch.ops.aten.tan.default(x)\n"
      "        return (x,)\n";
  for (std::int64_t limit = 0; limit <= 4; ++limit) {
    auto graph = graph_of("x", body);
    PassOptions options = aten::pass_options();
    options.application_limit = limit;
    run_all(*graph, options);
    EXPECT_EQ(graph->size(), 5U - static_cast<std::size_t>(std::min<std::int64_t>(limit, 3)));
  }
}

TEST(Passes, SwitchesAreSettings) {
  const config::PatchScope switches(
      {config::assign<"disable_passes">("noops,dead_code"), config::assign<"pass_limit">(7)});
  const PassOptions options = aten::pass_options();
  EXPECT_TRUE(options.disabled.contains("dead_code"));
  EXPECT_EQ(options.application_limit, 7);
  const config::PatchScope unknown({config::assign<"disable_passes">("dead_cod")});
  EXPECT_THROW(aten::pass_options(), UserError);
}

TEST(Passes, TheLimitOfTheSettingsCountsForTheWholeProcess) {
  const std::string body =
      "        a = torch.ops.aten.sin.default(x)\n"
      "        b = torch.ops.aten.cos.default(x)\n"
      "        return (x,)\n";
  const config::PatchScope limit({config::assign<"pass_limit">(3)});
  auto first = graph_of("x", body);
  auto second = graph_of("x", body);
  auto third = graph_of("x", body);
  for (Graph* graph : {first.get(), second.get(), third.get()}) {
    run_all(*graph, aten::pass_options());
  }
  EXPECT_EQ(first->size(), 2U);
  EXPECT_EQ(second->size(), 3U);
  EXPECT_EQ(third->size(), 4U);
}

TEST(Passes, ARequiredPassCannotBeDisabled) {
  const config::PatchScope disabled({config::assign<"disable_passes">("partition_min_cut")});
  try {
    aten::pass_options();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'partition_min_cut' is required"), std::string::npos)
        << error.what();
  }
}

TEST(Passes, ComeFromEveryRoom) {
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const Pass& pass : all_passes()) {
    EXPECT_FALSE(pass.description.empty()) << pass.name;
    names.emplace(pass.room, pass.name);
  }
  const std::set<std::pair<std::string_view, std::string_view>> expected = {
      {"graph", "dead_code"},
      {"graph", "common_subexpressions"},
      {"graph", "noops"},
      {"autograd", "decompositions"},
      {"autograd", "partition_default"},
      {"autograd", "partition_min_cut"},
      {"backends", "lower"},
      {"compare", "fp64"}};
  EXPECT_TRUE(std::ranges::includes(names, expected)) << testing::PrintToString(names);
}

void break_the_graph(Graph& graph, PassContext& context) {
  context.may_apply();
  Node& first = *std::next(graph.nodes().begin());
  first.set_arguments({graph.output()});
}

TEST(Passes, ABrokenGraphIsNoticedAtOnce) {
  static const RegisterPass registered({.name = "broken_for_a_test",
                                        .room = "graph",
                                        .description = "breaks the graph",
                                        .rewrite = break_the_graph});
  auto graph = graph_of("x", "        a = torch.ops.aten.sin.default(x)\n        return (a,)\n");
  try {
    Pipeline({}).run("broken_for_a_test", *graph);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("the pass 'broken_for_a_test' left a broken graph"),
              std::string::npos);
  }
}

TEST(Passes, AnUnknownPassIsABug) {
  auto graph = graph_of("x", "        return (x,)\n");
  EXPECT_THROW(Pipeline({}).run("dead_cod", *graph), InternalError);
}

}  // namespace
}  // namespace assay::graph
