// The debug wrapper inside one process: what is written, and what it leaves alone.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "../frontend/support.h"
#include "assay/compile.h"
#include "assay/error.h"
#include "aten/runner.h"
#include "backends/fault.h"
#include "repro/accuracy_error.h"
#include "repro/config.h"
#include "repro/inputs.h"
#include "support/temporary_directory.h"

namespace assay::repro {
namespace {

using backends::FaultKind;
using backends::FaultScope;
using std::filesystem::path;

// Runs in a directory of its own, since `repro.py` is written to the current one.
class Wrapper : public ::testing::Test {
 protected:
  Wrapper() { std::filesystem::current_path(directory_.path()); }
  ~Wrapper() override { std::filesystem::current_path(saved_); }

  static DebugConfig config(ReproAfter after, int level) {
    DebugConfig made;
    made.repro_after = after;
    made.repro_level = level;
    made.reduce = ReduceWhen::launcher;
    return made;
  }
  static path launcher() { return minifier_directory({}) / "minifier_launcher.py"; }
  static bool nothing_is_written() { return std::filesystem::is_empty("."); }

  path saved_ = std::filesystem::current_path();
  testing::TemporaryDirectory directory_;
};

at::Tensor first_input(const path& file) {
  return load_inputs(read_repro_file(file)).values.at(0).leaf.toTensor();
}

TEST_F(Wrapper, WritesNothingWhenAllIsWell) {
  for (const ReproAfter after : {ReproAfter::dynamo, ReproAfter::aot}) {
    for (const int level : {1, 2, 4}) {
      const DebugConfigScope scope(config(after, level));
      const auto program = assay::compile([](const at::Tensor& x) { return x.relu().sum(); });
      const at::Tensor x = leaf({3, 4});
      program(x).backward();
      expect_same(x.grad(), at::ones({3, 4}));
      EXPECT_TRUE(nothing_is_written()) << level;
    }
  }
}

TEST_F(Wrapper, AProgramThatFailsItselfIsNotTheCompilersFault) {
  const DebugConfigScope scope(config(ReproAfter::dynamo, 2));
  const auto program = assay::compile([](const at::Tensor& x) { return x.mm(x); });
  EXPECT_ANY_THROW(program(numbers({2, 3})));
  EXPECT_TRUE(nothing_is_written());
}

TEST_F(Wrapper, ARefusalIsNotWritten) {
  const DebugConfigScope scope(config(ReproAfter::dynamo, 2));
  const auto program = assay::compile([](const at::Tensor& x) { return x * x.sum().item(); });
  EXPECT_THROW(program(numbers({2, 3})), TraceError);
  EXPECT_TRUE(nothing_is_written());
}

TEST_F(Wrapper, TheExceptionIsTheSameWithAndWithoutIt) {
  const FaultScope fault({"relu", FaultKind::runtime_error});
  const auto message = [] {
    const auto program = assay::compile([](const at::Tensor& x) { return x.relu() + 1; });
    return message_of<aten::OperatorError>([&] { program(numbers({4})); });
  };
  const std::string plain = message();
  {
    const DebugConfigScope scope(config(ReproAfter::dynamo, 2));
    EXPECT_EQ(message(), plain);
  }
  // Here the fault is the inner compiler's, and so is the name of the node.
  const DebugConfigScope scope(config(ReproAfter::aot, 2));
  EXPECT_NE(message().find("node 'relu_fault' failed: injected runtime error"), std::string::npos);
}

TEST_F(Wrapper, ChangedInputsAreWrittenAsTheyWere) {
  const FaultScope fault({"relu", FaultKind::runtime_error});
  const DebugConfigScope scope(config(ReproAfter::dynamo, 2));
  const auto program =
      assay::compile([](const at::Tensor& x) { return x.add_(100).relu(); }, {.backend = "eager"});
  const at::Tensor x = numbers({4});
  EXPECT_ANY_THROW(program(x));
  expect_same(x, numbers({4}) + 100);
  expect_same(first_input(launcher()), numbers({4}));
}

TEST_F(Wrapper, RunningStatisticsAreWrittenAsTheyWere) {
  const FaultScope fault({"relu", FaultKind::runtime_error});
  const DebugConfigScope scope(config(ReproAfter::dynamo, 2));
  const at::Tensor mean = at::zeros({2});
  const auto program = assay::compile(
      [](const at::Tensor& running_mean, const at::Tensor& x) {
        return at::batch_norm(x, {}, {}, running_mean, at::ones({2}), true, 0.5, 1e-5, false)
            .relu();
      },
      {.backend = "eager"});
  EXPECT_ANY_THROW(program(mean, numbers({3, 2})));
  EXPECT_FALSE(at::equal(mean, at::zeros({2})));
  expect_same(first_input(launcher()), at::zeros({2}));
}

TEST_F(Wrapper, AFaultInBackwardIsSeenAfterDynamo) {
  const FaultScope fault({"threshold_backward", FaultKind::runtime_error});
  const DebugConfigScope scope(config(ReproAfter::dynamo, 2));
  const auto program =
      assay::compile([](const at::Tensor& x) { return x.relu().sum(); }, {.backend = "aot_eager"});
  EXPECT_ANY_THROW(program(leaf({4})));
  const ReproFile file = read_repro_file(launcher());
  EXPECT_EQ(file.stage, Stage::after_dynamo);
  EXPECT_NE(file.header.find("# failure: injected runtime error"), std::string::npos);
}

TEST_F(Wrapper, AFaultInBackwardIsSeenAfterAotInTheBackwardGraph) {
  const FaultScope fault({"threshold_backward", FaultKind::runtime_error});
  const DebugConfigScope scope(config(ReproAfter::aot, 1));
  const auto program =
      assay::compile([](const at::Tensor& x) { return x.relu().sum(); }, {.backend = "aot_eager"});
  const at::Tensor loss = program(leaf({4}));
  EXPECT_TRUE(nothing_is_written());
  EXPECT_ANY_THROW(loss.backward());
  const ReproFile file = read_repro_file("repro.py");
  EXPECT_NE(file.header.find("# graph: backward"), std::string::npos) << file.header;
  EXPECT_EQ(load_inputs(file).made_up_storages, 0U);
}

TEST_F(Wrapper, ATrialOfBackwardLeavesGradientsAndRandomNumbersAlone) {
  const auto program = [](const at::Tensor& x) { return (at::rand({4}) * x).sum(); };
  const auto gradient = [&] {
    at::manual_seed(3);
    const at::Tensor x = leaf({4});
    assay::compile(program)(x).backward();
    return x.grad();
  };
  const at::Tensor expected = gradient();
  const DebugConfigScope scope(config(ReproAfter::dynamo, 2));
  expect_same(gradient(), expected);
}

TEST_F(Wrapper, ForwardOnlyDoesNotTryBackward) {
  const FaultScope fault({"threshold_backward", FaultKind::runtime_error});
  DebugConfig settings = config(ReproAfter::dynamo, 2);
  settings.repro_forward_only = true;
  const DebugConfigScope scope(settings);
  const auto program =
      assay::compile([](const at::Tensor& x) { return x.relu().sum(); }, {.backend = "aot_eager"});
  const at::Tensor loss = program(leaf({4}));
  EXPECT_TRUE(nothing_is_written());
  EXPECT_ANY_THROW(loss.backward());
}

TEST_F(Wrapper, WrongGradientsAreFoundAtLevelFour) {
  const FaultScope fault({"threshold_backward", FaultKind::accuracy});
  for (const ReproAfter after : {ReproAfter::dynamo, ReproAfter::aot}) {
    const DebugConfigScope scope(config(after, 4));
    const auto program = assay::compile([](const at::Tensor& x) { return x.relu().sum(); },
                                        {.backend = "aot_eager"});
    EXPECT_THROW(program(leaf({4})).backward(), AccuracyError);
    EXPECT_EQ(read_repro_file("repro.py").accuracy, "True");
    std::filesystem::remove("repro.py");
  }
}

TEST_F(Wrapper, ItStopsWhenTheConfigurationNoLongerAsksForIt) {
  const auto program = assay::compile([](const at::Tensor& x) { return x.relu(); });
  {
    const DebugConfigScope scope(config(ReproAfter::dynamo, 3));
    program(numbers({4}));
    EXPECT_TRUE(std::filesystem::exists(launcher()));
    std::filesystem::remove(launcher());
  }
  program(numbers({4}));
  EXPECT_FALSE(std::filesystem::exists(launcher()));
}

TEST_F(Wrapper, ABackendThatIsNotWatchedIsSaidToBe) {
  const DebugConfigScope scope(config(ReproAfter::aot, 2));
  const Warnings warnings;
  assay::compile([](const at::Tensor& x) { return x.relu(); }, {.backend = "eager"})(numbers({4}));
  ASSERT_EQ(warnings.texts().size(), 1U);
  EXPECT_NE(warnings.texts()[0].find("'eager' does not differentiate ahead of time"),
            std::string::npos);
}

TEST_F(Wrapper, WithoutACurrentDirectoryTheTemporaryOneIsUsed) {
  const FaultScope fault({"relu", FaultKind::runtime_error});
  const DebugConfigScope scope(config(ReproAfter::dynamo, 1));
  std::filesystem::create_directory("gone");
  std::filesystem::current_path("gone");
  std::filesystem::remove(directory_.path() / "gone");
  const Warnings warnings;
  const auto program = assay::compile([](const at::Tensor& x) { return x.relu(); });
  EXPECT_THROW(program(numbers({4})), aten::OperatorError);
  std::string all;
  for (const std::string& text : warnings.texts()) all += text + "\n";
  EXPECT_NE(all.find("Writing checkpoint with 3 nodes to /tmp/"), std::string::npos) << all;
  EXPECT_NE(all.find("No write permissions for "), std::string::npos) << all;
}

TEST_F(Wrapper, StoragesThatCannotBeWrittenLeaveTheShapes) {
  const FaultScope fault({"relu", FaultKind::runtime_error});
  const DebugConfigScope scope(config(ReproAfter::dynamo, 2));
  const path checkpoints = minifier_directory({}) / "checkpoints";
  std::filesystem::create_directories(checkpoints);
  std::ofstream(checkpoints / "storages") << "in the way";
  const auto program = assay::compile([](const at::Tensor& x) { return x.relu(); });
  EXPECT_THROW(program(numbers({4})), aten::OperatorError);
  EXPECT_EQ(load_inputs(read_repro_file(launcher())).made_up_storages, 1U);
}

TEST_F(Wrapper, ThreadsThatFailTogetherEachWriteAWholeFile) {
  const FaultScope fault({"relu", FaultKind::runtime_error});
  const DebugConfigScope scope(config(ReproAfter::dynamo, 3));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      const auto program = assay::compile([](const at::Tensor& x) { return x.relu(); });
      for (int call = 0; call < 3; ++call) EXPECT_ANY_THROW(program(numbers({4}) + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(load_inputs(read_repro_file(launcher())).made_up_storages, 0U);
}

TEST_F(Wrapper, StepsAreLogged) {
  std::string all;
  const auto subscription =
      observe::subscribe([&](const observe::Event& event) { all += event.message + "\n"; });
  assay::compile([](const at::Tensor& x) { return x.relu().sum(); }, {.name = "loss"})(leaf({4}));
  for (const char* step :
       {"Step 1: torchdynamo start tracing loss\n", "Step 1: torchdynamo done tracing loss\n",
        "Step 2: calling compiler function native\n", "Step 3: compiling forward graph\n",
        "Step 3: done compiling backward graph\n", "Step 2: done compiler function native\n"}) {
    EXPECT_NE(all.find(step), std::string::npos) << step;
    all.erase(0, all.find(step));
  }
}

TEST_F(Wrapper, ADirectoryThatCannotBeMadeIsAWarningAndAnotherIsUsed) {
  const FaultScope fault({"relu", FaultKind::runtime_error});
  DebugConfig settings = config(ReproAfter::dynamo, 2);
  settings.debug_directory = "/proc/no/such";
  const DebugConfigScope scope(settings);
  const Warnings warnings;
  const auto program = assay::compile([](const at::Tensor& x) { return x.relu(); });
  EXPECT_THROW(program(numbers({4})), aten::OperatorError);
  std::string all;
  for (const std::string& text : warnings.texts()) all += text + "\n";
  EXPECT_NE(all.find("No write permissions for /proc/no/such ("), std::string::npos) << all;
  EXPECT_NE(all.find("using " + std::filesystem::temp_directory_path().string()), std::string::npos)
      << all;
}

}  // namespace
}  // namespace assay::repro
