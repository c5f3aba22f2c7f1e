// The search that begins while the program's first run goes on. A command is the judge; it is given
// programs of more and of fewer calls.
#include "reduce/reduce.h"
#include "reduce_fixture.h"

namespace assay::reduce {
namespace {

class EarlyTest : public ReduceTest {
 protected:
  Reduced reduce_with(const std::string& command, int workers = 2) {
    load(class_text(
        "x: \"f32[8][1]cpu\"",
        {"a = torch.sin(x)", "b = torch.relu(a)", "c = torch.cos(b)", "d = torch.relu(c)",
         "e = torch.sin(d)", "f = torch.cos(e)", "g = torch.relu(f)", "return (g,)"}));
    sandbox::ServerPool pool(sandbox::fork_server(), workers);
    Options options;
    options.trial.command = command;
    options.accuracy = Options::Accuracy::never;
    options.output = directory_.path() / std::to_string(++reductions_);
    options.look_for_others = false;
    options.early = true;
    output_ = options.output;
    return reduce(file_, options, pool);
  }

  std::set<std::string> checkpoints() const {
    std::set<std::string> names;
    if (!std::filesystem::exists(output_ / "checkpoints")) return names;
    for (const auto& entry : std::filesystem::directory_iterator(output_ / "checkpoints")) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  // The number of calls, for a command.
  static std::string calls() { return "$(grep -c '= torch' \"$0\")"; }

  std::filesystem::path output_;
  int reductions_ = 0;
};

TEST_F(EarlyTest, DoesNotDependOnTheNumberOfWorkers) {
  std::set<std::string> graphs;
  for (const int workers : {1, 2, 3}) {
    const Reduced result = reduce_with("! grep -q torch.cos", workers);
    EXPECT_EQ(result.status, Reduced::Status::reduced);
    EXPECT_EQ(result.calls, 1U);
    EXPECT_EQ(result.reproduced, result.runs);
    EXPECT_TRUE(checkpoints().contains("7.py")) << "the program itself";
    EXPECT_TRUE(checkpoints().contains("3.py")) << "one call of each operator";
    graphs.insert(result.graph);
  }
  EXPECT_EQ(graphs.size(), 1U);
}

TEST_F(EarlyTest, TheFailureOfTheProgramItselfCounts) {
  const Reduced result = reduce_with("test " + calls() + " -ge 5 && exit 4; exit 3 #");
  EXPECT_EQ(result.status, Reduced::Status::reduced);
  EXPECT_EQ(result.signature.type, "exit code 4") << result.message;
  EXPECT_EQ(result.calls, 5U);
  EXPECT_FALSE(checkpoints().contains("1.py")) << "was for the other failure";
  EXPECT_EQ(result.others.size(), 1U);
}

TEST_F(EarlyTest, AProgramThatPassesLeavesNothing) {
  const Reduced result = reduce_with("test " + calls() + " -ge 5 && exit 0; exit 3 #");
  EXPECT_EQ(result.status, Reduced::Status::passes);
  EXPECT_FALSE(std::filesystem::exists(output_ / "repro.py"));
  EXPECT_EQ(checkpoints(), std::set<std::string>());
}

TEST_F(EarlyTest, AKilledFirstRunIsRunAgain) {
  const std::string mark = (directory_.path() / "mark").string();
  const Reduced result = reduce_with("test " + calls() + " -ge 7 && mkdir " + mark +
                                     " && kill -KILL $$; ! grep -q torch.cos");
  EXPECT_EQ(result.status, Reduced::Status::reduced);
  EXPECT_EQ(result.calls, 1U);
  EXPECT_EQ(result.killed_trials, 1);
}

TEST_F(EarlyTest, AFirstRunThatIsAlwaysKilledEndsIt) {
  const Reduced result =
      reduce_with("test " + calls() + " -ge 7 && kill -KILL $$; ! grep -q torch.cos");
  EXPECT_EQ(result.status, Reduced::Status::killed);
  EXPECT_FALSE(std::filesystem::exists(output_ / "repro.py"));
}

}  // namespace
}  // namespace assay::reduce
