// Trial servers: each kind of ending is told apart, and whatever happens, the next trial is right.
#include "sandbox/server.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "assay/error.h"
#include "sandbox/prepare.h"
#include "sandbox_fixture.h"

namespace assay::sandbox {
namespace {

const char* const kModel = "a = torch.sin(x)\nb = torch.relu(a)\nc = b + 1\nreturn (c,)";

class ServerTest : public SandboxTest {};

TEST_F(ServerTest, WhatWorksPasses) {
  ServerPool pool(fork_server(), 1);
  for (const char* backend : {"eager", "aot_eager"}) {
    for (bool accuracy : {false, true}) {
      Trial good = trial(kModel);
      good.backend = backend;
      good.accuracy = accuracy;
      const Outcome outcome = pool.run(good);
      EXPECT_EQ(classify(outcome).verdict, Verdict::passed) << outcome.report.message;
      EXPECT_EQ(outcome.exit_code, 0);
      EXPECT_GT(outcome.peak_bytes, 0U);
    }
  }
}

TEST_F(ServerTest, WhatFailsEagerlyIsInvalid) {
  ServerPool pool(fork_server(), 1);
  for (const char* body : {"a = torch.mm(x, torch.ones(5, 5))\nreturn (a,)",
                           "a = torch.no_such_function(x)\nreturn (a,)", "a = = 3"}) {
    const Outcome outcome = pool.run(trial(body));
    EXPECT_EQ(classify(outcome).verdict, Verdict::invalid) << body;
    EXPECT_FALSE(outcome.report.message.empty()) << body;
  }
}

struct FaultCase {
  const char* kind;
  Verdict verdict;
  Stage stage;
  const char* type;
};

class ServerFaultTest : public ServerTest,
                        public ::testing::WithParamInterface<std::tuple<FaultCase, const char*>> {};

TEST_P(ServerFaultTest, IsToldApart) {
  const auto& [fault, backend] = GetParam();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (fault.kind == std::string("segfault") || fault.verdict == Verdict::memory) {
    GTEST_SKIP() << "a sanitizer has its own ideas about signals and address space";
  }
#endif
  ServerPool pool(fork_server(), 1);
  Trial faulty = trial(kModel);
  faulty.backend = backend;
  faulty.inject = std::string("relu:") + fault.kind;
  faulty.accuracy = fault.verdict == Verdict::accuracy;
  faulty.limits.wall_seconds = fault.verdict == Verdict::timeout ? 0.4 : 20;
  faulty.limits.memory_bytes = std::size_t{300} << 20U;
  const Outcome outcome = pool.run(faulty);
  const Signature signature = classify(outcome);
  EXPECT_EQ(to_string(signature.verdict), std::string(to_string(fault.verdict)))
      << outcome.report.message;
  EXPECT_EQ(signature.stage, fault.stage);
  if (fault.type != nullptr) {
    EXPECT_EQ(signature.type, fault.type);
  }
  if (fault.verdict != Verdict::accuracy) {
    EXPECT_EQ(signature.op, "relu");
    EXPECT_EQ(outcome.report.suspects, std::vector<std::string>{"b"});
  }
  EXPECT_EQ(classify(pool.run(trial(kModel))).verdict, Verdict::passed) << "the next one";
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ServerFaultTest,
    ::testing::Combine(
        ::testing::Values(
            FaultCase{"compile_error", Verdict::exception, Stage::compile, "BackendError"},
            FaultCase{"runtime_error", Verdict::exception, Stage::run, "OperatorError"},
            FaultCase{"accuracy", Verdict::accuracy, Stage::compare, "values"},
            FaultCase{"nan", Verdict::accuracy, Stage::compare, "nan"},
            FaultCase{"segfault", Verdict::signal, Stage::run, "SIGSEGV"},
            FaultCase{"abort", Verdict::signal, Stage::run, "SIGABRT"},
            FaultCase{"hang", Verdict::timeout, Stage::run, nullptr},
            FaultCase{"oom", Verdict::memory, Stage::run, nullptr}),
        ::testing::Values("eager", "aot_eager")),
    [](const auto& with) {
      return std::string(std::get<0>(with.param).kind) + "_" + std::get<1>(with.param);
    });

std::size_t count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(ServerTest, ItsPreparationStartsNoThread) {
  const std::size_t before = count_threads();
  prepare_for_trials();
  EXPECT_EQ(count_threads(), before);
}

TEST_F(ServerTest, ATrialHasThreads) {
  ServerPool pool(fork_server(), 1);
  Trial parallel = trial("a = torch.mm(x, x)\nb = torch.exp(a)\nreturn (b,)");
  parallel.file = graph_text("a = torch.mm(x, x)\nb = torch.exp(a)\nreturn (b,)",
                             "x: \"f32[512, 512][512, 1]cpu\"");
  parallel.accuracy = true;
  for (const int threads : {2, 1, 3}) {
    parallel.threads = threads;
    const Outcome outcome = pool.run(parallel);
    EXPECT_EQ(classify(outcome).verdict, Verdict::passed) << outcome.report.message;
  }
  Trial faulty = trial(kModel);
  faulty.inject = "relu:runtime_error:threads";
  EXPECT_EQ(classify(pool.run(faulty)).verdict, Verdict::passed);
  faulty.threads = 2;
  EXPECT_EQ(classify(pool.run(faulty)).verdict, Verdict::exception);
}

TEST_F(ServerTest, ThatDiesIsReplaced) {
  pid_t server = -1;
  const StartServer start = fork_server();
  ServerPool pool([&](int connection) { return server = start(connection); }, 1);
  Trial hang = trial(kModel);
  hang.inject = "relu:hang";
  pool.start(0, hang);
  const pid_t first = server;
  kill(first, SIGKILL);
  const auto [worker, outcome] = pool.wait();
  EXPECT_EQ(worker, 0);
  EXPECT_EQ(outcome.server_error, "the trial server died");
  EXPECT_EQ(classify(outcome).verdict, Verdict::killed);
  EXPECT_EQ(classify(pool.run(trial(kModel))).verdict, Verdict::passed);
  EXPECT_NE(server, first);
  kill(server, SIGKILL);  // while it is idle
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(classify(pool.run(trial(kModel))).verdict, Verdict::passed);
}

TEST_F(ServerTest, ThatCannotStartIsAUserError) {
  ServerPool pool(start_command({"/bin/false"}), 1);
  EXPECT_THROW(pool.run(trial(kModel)), UserError);
  ServerPool missing(start_command({"/no/such/server"}), 1);
  EXPECT_THROW(missing.run(trial(kModel)), UserError);
}

TEST_F(ServerTest, AfterACancelledTrialTheNextIsRight) {
  ServerPool pool(fork_server(), 1);
  Trial hang = trial(kModel);
  hang.inject = "relu:hang";
  hang.limits.wall_seconds = 60;
  for (int pause : {0, 1, 20, 100}) {
    pool.start(0, hang);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    EXPECT_FALSE(pool.is_idle(0));
    pool.cancel(0);
    EXPECT_TRUE(pool.is_idle(0));
    const Outcome outcome = pool.run(trial(kModel));
    EXPECT_EQ(classify(outcome).verdict, Verdict::passed) << pause;
  }
}

TEST_F(ServerTest, TrialsCancelledBeforeTheyBeganAreNotRun) {
  ServerPool pool(fork_server(), 1);
  Trial hang = trial(kModel);
  hang.inject = "relu:hang";
  hang.limits.wall_seconds = 60;
  pool.run(trial(kModel));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) {
    pool.start(0, hang);
    pool.cancel(0);
  }
  Trial faulty = trial(kModel);
  faulty.inject = "relu:abort";
  EXPECT_EQ(classify(pool.run(faulty)).type, "SIGABRT");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(ServerTest, SeveralWorkersGiveTheirOwnAnswers) {
  ServerPool pool(fork_server(), 2);
  Trial faulty = trial(kModel);
  faulty.inject = "relu:abort";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pool.idle_worker(), 0);
    pool.start(0, trial(kModel));
    EXPECT_EQ(pool.idle_worker(), 1);
    pool.start(1, faulty);
    EXPECT_EQ(pool.idle_worker(), -1);
    for (int done = 0; done < 2; ++done) {
      const auto [worker, outcome] = pool.wait();
      EXPECT_EQ(classify(outcome).verdict, worker == 0 ? Verdict::passed : Verdict::signal);
    }
  }
}

TEST_F(ServerTest, LeavesNoProcessAndNoDescriptor) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  {
    ServerPool pool(fork_server(), 2);
    pool.run(trial(kModel));
  }
  EXPECT_EQ(descriptors(), before);
}

TEST_F(ServerTest, ACommandJudgesByItsExitCode) {
  ServerPool pool(fork_server(), 1);
  const auto judge = [&](const std::string& command, double wall = 20) {
    Trial checked = trial(kModel);
    checked.command = command;
    checked.limits.wall_seconds = wall;
    const Signature signature = classify(pool.run(checked));
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path())) << command;
    return std::string(to_string(signature.verdict)) +
           (signature.type.empty() ? "" : " " + signature.type);
  };
  EXPECT_EQ(judge("grep -q torch.relu"), "passed");
  EXPECT_EQ(judge("! grep -q torch.relu"), "exception exit code 1");
  EXPECT_EQ(judge("exit 125 #"), "invalid exit code 125");
  EXPECT_EQ(judge("kill -SEGV $$ #"), "signal SIGSEGV");
  EXPECT_EQ(judge("kill -KILL $$ #"), "killed SIGKILL");
  EXPECT_EQ(judge("sleep 30; true", 0.2), "timeout");
  EXPECT_EQ(judge("trap 'exit 0' TERM; sleep 30 & wait; true", 0.2), "timeout");
  // There is no such command: that says nothing about the file.
  EXPECT_EQ(judge("no_such_command"), "invalid exit code 127");
  EXPECT_EQ(judge("/etc/passwd"), "invalid exit code 126");
}

// What a command has started must not outlive the pool, nor the server's violent end.
TEST_F(ServerTest, WhatACommandStartedEndsWithTheServer) {
  const std::filesystem::path file = directory_.path() / "pid";
  Trial endless = trial(kModel);
  endless.command = "sleep 60 & echo $! > '" + file.string() + "'; wait; true";
  pid_t sleeper = 0;
  {
    ServerPool pool(fork_server(), 1);
    pool.start(0, endless);
    for (int i = 0; i < 500 && sleeper == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::ifstream(file) >> sleeper;
    }
    ASSERT_NE(sleeper, 0);
  }
  std::string state = "R";
  for (int i = 0; i < 100 && state != "Z" && !state.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::string name;
    state.clear();
    std::ifstream("/proc/" + std::to_string(sleeper) + "/stat") >> name >> name >> state;
  }
  EXPECT_TRUE(state.empty() || state == "Z") << state;
}

TEST_F(ServerTest, AFileThatCannotBeWrittenIsTheServersError) {
  ServerPool pool(fork_server(), 1);
  Trial checked = trial(kModel);
  checked.command = "true";
  checked.save_directory = "/no/such/directory";
  EXPECT_NE(pool.run(checked).server_error, "");
}

}  // namespace
}  // namespace assay::sandbox
