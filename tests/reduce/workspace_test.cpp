// The directory of a reduction: goes on, starts again, and removes nothing that is not its own.
#include "reduce/workspace.h"

#include <fstream>

#include "assay/error.h"
#include "reduce_fixture.h"

namespace assay::reduce {
namespace {

namespace fs = std::filesystem;

class WorkspaceTest : public ReduceTest {
 protected:
  repro::ReproFile subject(const fs::path& file = "subject.py") {
    return repro::parse_repro_file(
        "import torch\n" + class_text("x: \"f32[4][1]cpu\"", {"a = x + 1", "return (a,)"}),
        file.string());
  }
  fs::path out_ = directory_.path() / "out";
};

TEST_F(WorkspaceTest, GoesOnWithTheSameReduction) {
  const auto file = subject();
  EXPECT_FALSE(Workspace(out_, file, "one", false).is_resumed());
  std::ofstream(out_ / "verdicts.jsonl") << "{}\n";
  EXPECT_TRUE(Workspace(out_, file, "one", false).is_resumed());
  EXPECT_TRUE(fs::exists(out_ / "verdicts.jsonl"));
  EXPECT_FALSE(Workspace(out_, file, "another", false).is_resumed());
  EXPECT_FALSE(fs::exists(out_ / "verdicts.jsonl"));
  EXPECT_TRUE(Workspace(out_, file, "another", false).is_resumed());
  EXPECT_FALSE(Workspace(out_, file, "another", true).is_resumed());
}

TEST_F(WorkspaceTest, RemovesNothingThatNoReductionMade) {
  fs::create_directories(out_ / "storages");
  std::ofstream(out_ / "storages" / "precious") << "data";
  EXPECT_THROW(Workspace(out_, subject(), "one", false), UserError);
  EXPECT_THROW(Workspace(out_, subject(), "one", true), UserError);
  EXPECT_TRUE(fs::exists(out_ / "storages" / "precious"));
}

TEST_F(WorkspaceTest, DoesNotRemoveWhatIsToBeReduced) {
  { Workspace(out_, subject(), "one", false).save("checkpoints/3.py", "text"); }
  for (const char* name : {"repro.py", "checkpoints/3.py"}) {
    EXPECT_THROW(Workspace(out_, subject(out_ / name), "two", false), UserError) << name;
  }
  EXPECT_TRUE(fs::exists(out_ / "checkpoints/3.py"));
  EXPECT_NO_THROW(Workspace(out_, subject(directory_.path() / "repro.py"), "two", false));
  EXPECT_NO_THROW(Workspace(out_, subject(out_ / "mine.py"), "three", false));
}

TEST_F(WorkspaceTest, MadeUpContentsAreSavedOnce) {
  const auto file = subject();
  Workspace workspace(out_, file, "one", false);
  const Candidate program = workspace.load(file, 0);
  ASSERT_FALSE(program.storages[0].hash.empty());
  EXPECT_EQ(workspace.load(file, 0).storages[0].hash, program.storages[0].hash);
  EXPECT_NE(workspace.load(file, 1).storages[0].hash, program.storages[0].hash);
}

TEST_F(WorkspaceTest, TidyingKeepsWhatIsMentioned) {
  const auto file = subject();
  Workspace workspace(out_, file, "one", false);
  const Candidate kept = workspace.load(file, 0);
  const Candidate dropped = workspace.load(file, 1);
  workspace.save("other/1-signal.py", workspace.print_for_people(kept, "# comment\n", 1));
  std::ofstream(out_ / "candidate_12.py") << workspace.print(dropped);
  workspace.tidy();
  EXPECT_TRUE(workspace.store().contains(kept.storages[0].hash));
  EXPECT_FALSE(workspace.store().contains(dropped.storages[0].hash));
  EXPECT_FALSE(fs::exists(out_ / "candidate_12.py"));
}

}  // namespace
}  // namespace assay::reduce
