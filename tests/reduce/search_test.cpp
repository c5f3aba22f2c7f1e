// The search with a command or an injected fault as the judge.
#include "reduce/search.h"

#include "reduce/reduce.h"
#include "reduce_fixture.h"

namespace assay::reduce {
namespace {

using sandbox::Signature;
using sandbox::Verdict;

class SearchTest : public ReduceTest {
 protected:
  Candidate program() {
    return load_with_values(class_text("x: \"f32[8][1]cpu\"",
                                       {"a = torch.sin(x)", "b = torch.relu(a)", "c = torch.cos(b)",
                                        "d = torch.relu(c)", "e = d * 2", "return (e, b)"}));
  }

  // With a command as the judge; how it fails is asked first.
  struct Found {
    Candidate best;
    std::int64_t trials = 0;
    std::vector<Verdict> refused = {};
    int steps = 0;
  };
  Found search(const std::string& command, int workers = 1) {
    const Candidate start = program();
    sandbox::ServerPool pool(sandbox::fork_server(), workers);
    sandbox::Trial trial;
    trial.command = command;
    trial.save_directory = workspace_->directory().string();
    Judge judge(pool, trial);
    judge.look_for(classify(judge.run(workspace_->print(start))));
    VerdictLog log(workspace_->directory() / "verdicts.jsonl");
    Found found;
    SearchEvents events;
    events.on_step = [&](const Candidate&, const std::string&) { ++found.steps; };
    events.on_passing = [&](const Candidate&, const std::string&) {
      found.refused.push_back(Verdict::passed);
    };
    events.on_other_failure = [&](const Candidate&, const std::string&,
                                  const Signature& signature) {
      found.refused.push_back(signature.verdict);
    };
    Search search(start, judge, log, *workspace_, events);
    search.run(all_passes());
    found.best = search.best();
    found.trials = judge.trials();
    return found;
  }
};

TEST_F(SearchTest, EndsAtWhatTheCommandAsksFor) {
  const Found found = search("! grep -q torch.relu");
  const Lines lines = lines_of(found.best);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[1].find("torch.relu("), std::string::npos);
  EXPECT_EQ(count_calls(*found.best.graph), 1U);
  EXPECT_EQ(tensor_of(found.best, 0).meta.sizes, std::vector<graph::SizeExpr>{1});
  EXPECT_GT(found.steps, 2);
}

TEST_F(SearchTest, TwoThatMustStayStay) {
  const Found found = search("! { grep -q torch.sin \"$0\" && grep -q torch.cos \"$0\"; } #");
  EXPECT_EQ(count_calls(*found.best.graph), 2U);
}

TEST_F(SearchTest, DoesNotDependOnTheNumberOfWorkers) {
  std::set<Lines> results;
  for (int workers : {1, 3}) results.insert(lines_of(search("! grep -q torch.cos", workers).best));
  EXPECT_EQ(results.size(), 1U);
}

TEST_F(SearchTest, AnotherFailureIsRefusedAndTold) {
  // Without sin it fails otherwise.
  const Found found =
      search("grep -q torch.sin \"$0\" || exit 3; grep -q torch.cos \"$0\" && exit 4; exit 0 #");
  EXPECT_EQ(count_calls(*found.best.graph), 2U);
  EXPECT_NE(std::ranges::find(found.refused, Verdict::exception), found.refused.end());
  EXPECT_NE(std::ranges::find(found.refused, Verdict::passed), found.refused.end());
}

TEST_F(SearchTest, WhatAlwaysFailsEnds) {
  const Found found = search("exit 1 #");
  EXPECT_LE(count_calls(*found.best.graph), 1U);
  EXPECT_LT(found.trials, 100);
}

TEST_F(SearchTest, AJudgeWhoseTrialsAreAllKilledGivesUp) {
  const Candidate start = program();
  sandbox::ServerPool pool(sandbox::fork_server(), 1);
  sandbox::Trial trial;
  trial.command = "kill -KILL $$ #";
  trial.save_directory = workspace_->directory().string();
  Judge judge(pool, trial);
  EXPECT_THROW(judge.run(workspace_->print(start)), AllKilled);
  EXPECT_EQ(judge.killed(), judge.trials());
}

TEST_F(SearchTest, AFaultThatComesAndGoesIsAskedForAgain) {
  const Candidate start = program();
  sandbox::ServerPool pool(sandbox::fork_server(), 2);
  sandbox::Trial trial;
  trial.backend = "aot_eager";
  trial.inject = "sin:abort:40%";
  trial.save_directory = workspace_->directory().string();
  Judge judge(pool, trial);
  Signature wanted;
  wanted.verdict = Verdict::signal;
  wanted.stage = Stage::run;
  wanted.type = "SIGABRT";
  wanted.op = "sin";
  judge.look_for(wanted);
  judge.set_tries(40);
  judge.start(workspace_->print(start));
  EXPECT_TRUE(judge.is_wanted(judge.wait().second.signature));
  const int failures = judge.count_wanted(workspace_->print(start), 20);
  EXPECT_GT(failures, 0);
  EXPECT_LT(failures, 20);
  EXPECT_EQ(judge.tries(), 40) << "only while it counts is each tried once";
}

class ReduceWholeTest : public ReduceTest {};

TEST_F(ReduceWholeTest, LeavesNoContentsThatNobodyMentions) {
  load(class_text("x: \"f32[8][1]cpu\"", {"a = torch.sin(x)", "b = torch.cos(a)",
                                          "c = torch.relu(b)", "d = c * 2", "return (d,)"}));
  const repro::ReproFile file = repro::parse_repro_file(file_.source->text, "subject.py");
  sandbox::ServerPool pool(sandbox::fork_server(), 2);
  Options options;
  options.trial.backend = "aot_eager";
  options.trial.inject = "relu:runtime_error";
  options.output = directory_.path() / "reduced";
  const Reduced result = reduce(file, options, pool);
  EXPECT_EQ(result.status, Reduced::Status::reduced);
  EXPECT_EQ(result.calls, 1U);
  std::string texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(options.output)) {
    if (entry.path().extension() != ".py") continue;
    std::ifstream stream(entry.path());
    texts.append(std::istreambuf_iterator<char>(stream), {});
    const repro::ReproFile saved = repro::read_repro_file(entry.path());
    for (const repro::StorageSpec& spec : saved.storages) {
      EXPECT_TRUE(spec.hash.empty() ||
                  std::filesystem::exists(options.output / "storages" / spec.hash))
          << entry.path();
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(options.output / "storages")) {
    EXPECT_NE(texts.find(entry.path().filename().string()), std::string::npos) << entry.path();
  }
  // The same again goes on from what it left, and comes to the same end.
  const Reduced again = reduce(file, options, pool);
  EXPECT_TRUE(again.is_resumed);
  EXPECT_EQ(again.graph, result.graph);
  EXPECT_LT(again.trials, result.trials);
}

}  // namespace
}  // namespace assay::reduce
