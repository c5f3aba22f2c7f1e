// What a failure is known by.
#include "sandbox/signature.h"

#include <gtest/gtest.h>

#include <csignal>

#include "assay/error.h"
#include "graph/parse.h"
#include "sandbox/origin.h"

namespace assay::sandbox {
namespace {

TEST(Signature, MessagesLoseWhatVaries) {
  const std::pair<const char*, const char*> table[] = {
      {"", ""},
      {"no numbers at all", "no numbers at all"},
      // shapes
      {"mat1 and mat2 shapes cannot be multiplied (200x3 and 4x5)",
       "mat1 and mat2 shapes cannot be multiplied (N and N)"},
      {"shape '[2, 3]' is invalid for input of size 7",
       "shape '[N]' is invalid for input of size N"},
      {"shape '[2, 3, 4]' is invalid for input of size 12",
       "shape '[N]' is invalid for input of size N"},
      {"sizes (2,3,4)", "sizes (N)"},
      {"error of 0.125 at 3", "error of N at N"},
      {"tolerance 1e-05", "tolerance N"},
      {"dimension -1", "dimension N"},
      // addresses
      {"bad pointer 0x7f3a00c0ffee", "bad pointer N"},
      // paths
      {"cannot open /tmp/a1/b2.cpp now", "cannot open <path> now"},
      {"File \"/home/me/x.py\", line 12", "File \"<path>\", line N"},
      {"and/or", "and/or"},
      // counters
      {"node 'relu_12' failed", "node 'relu' failed"},
      {"node 'relu' failed", "node 'relu' failed"},
      {"add_1_2 and arg0_1", "add and arg"},
      {"buf12 reads in_ptr0 and s77", "buf reads in_ptr and s"},
      {"conflicting declaration ‘auto at_Half_tmp_acc1_vec’",
       "conflicting declaration ‘auto at_Half_tmp_acc_vec’"},
      {"float32 is not int64, conv2d is not relu6", "float32 is not int64, conv2d is not relu6"},
      // a compiler's output
      {"g++ failed:\n/tmp/k3/a.cpp:12:5: error: 'tmp7' was not declared\n  tmp7 = "
       "1;\n/tmp/k3/a.cpp:"
       "13: error: more",
       "error: 'tmp' was not declared"},
      {"/tmp/a.cpp:1:10: fatal error: missing.h: No such file", "error: missing.h: No such file"},
      // white space
      {"two\n   lines  ", "two lines"},
  };
  for (const auto& [message, expected] : table) {
    EXPECT_EQ(normalise_message(message), expected) << message;
  }
}

TEST(Signature, NormalisingTwiceChangesNothingMore) {
  for (const char* message : {"shape '[2, 3]' of buf3 at /tmp/x/y.py:3", "relu_1 0x12 (3x4, 5)"}) {
    const std::string once = normalise_message(message);
    EXPECT_EQ(normalise_message(once), once);
  }
}

TEST(Signature, ALongMessageIsCutBetweenLetters) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string text(shift, 'x');
    for (int i = 0; i < 400; ++i) text += "\u2018";
    const std::string cut = normalise_message(text);
    EXPECT_LE(cut.size(), 303U);
    EXPECT_EQ((cut.size() - shift) % 3, 0U);
  }
}

Outcome failed_in(std::optional<Stage> stage) {
  Outcome outcome;
  outcome.exit_code = 0;
  outcome.report.stage = stage;
  outcome.report.status = "failed";
  outcome.report.type = "RuntimeError";
  outcome.report.message = "bad size 3";
  outcome.report.op = "torch.ops.aten.relu.default";
  return outcome;
}

TEST(Signature, AnExceptionHasStageTypeOperatorAndMessage) {
  const Signature signature = classify(failed_in(Stage::run));
  EXPECT_EQ(signature.verdict, Verdict::exception);
  EXPECT_EQ(signature.stage, Stage::run);
  EXPECT_EQ(signature.type, "RuntimeError");
  EXPECT_EQ(signature.op, "relu");
  EXPECT_EQ(signature.message, "bad size N");
  EXPECT_TRUE(signature.is_failure());
  EXPECT_EQ(describe(signature), "RuntimeError in relu while running: bad size N");
}

TEST(Signature, WhatFailsBeforeTheBackendsTurnIsInvalid) {
  using MaybeStage = std::optional<Stage>;
  for (const MaybeStage stage : {MaybeStage(), MaybeStage(Stage::load), MaybeStage(Stage::eager)}) {
    EXPECT_EQ(classify(failed_in(stage)).verdict, Verdict::invalid);
    Outcome crash;
    crash.signal = SIGSEGV;
    crash.report.stage = stage;
    EXPECT_EQ(classify(crash).verdict, Verdict::invalid);
    Outcome hang;
    hang.signal = SIGKILL;
    hang.limit = Outcome::Limit::wall;
    hang.report.stage = stage;
    EXPECT_EQ(classify(hang).verdict, Verdict::invalid);
  }
  for (const Stage stage : {Stage::compile, Stage::run, Stage::backward, Stage::compare}) {
    EXPECT_EQ(classify(failed_in(stage)).verdict, Verdict::exception) << to_string(stage);
  }
}

TEST(Signature, ABugOfOursIsNotTheProgramsFailure) {
  for (const Stage stage : {Stage::load, Stage::eager, Stage::compile, Stage::run}) {
    Outcome outcome = failed_in(stage);
    outcome.report.status = "internal";
    outcome.report.type = "InternalError";
    outcome.report.message = "internal error: a size of 3 (a.cpp:12). Please report it.";
    const Signature signature = classify(outcome);
    EXPECT_EQ(signature.verdict, Verdict::internal);
    EXPECT_FALSE(signature.is_failure());
    EXPECT_EQ(verdict_named(to_string(signature.verdict)), Verdict::internal);
    try {
      throw_if_internal(signature);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const InternalError& error) {
      EXPECT_EQ(std::string(error.what()), outcome.report.message) << "as the trial said it";
    }
  }
  EXPECT_NO_THROW(throw_if_internal(classify(failed_in(Stage::run))));
}

TEST(Signature, EndingsAreJudged) {
  Outcome outcome;
  outcome.report.stage = Stage::run;
  outcome.signal = SIGSEGV;
  EXPECT_EQ(classify(outcome).verdict, Verdict::signal);
  EXPECT_EQ(classify(outcome).type, "SIGSEGV");
  for (int number : {SIGKILL, SIGTERM, SIGINT, SIGHUP}) {
    outcome.signal = number;
    EXPECT_EQ(classify(outcome).verdict, Verdict::killed) << number;
    EXPECT_FALSE(classify(outcome).is_failure());
  }
  outcome.limit = Outcome::Limit::cpu;
  EXPECT_EQ(classify(outcome).verdict, Verdict::timeout);
  EXPECT_TRUE(describe(classify(outcome)).ends_with(" while running"));

  Outcome server;
  server.server_error = "the trial server died";
  EXPECT_EQ(classify(server).verdict, Verdict::killed);
  EXPECT_EQ(classify(server).message, "the trial server died");
}

TEST(Signature, WhoeverLeavesWithoutAWordFailed) {
  Outcome outcome;
  outcome.report.stage = Stage::run;
  for (int code : {0, 3}) {
    outcome.exit_code = code;
    EXPECT_EQ(classify(outcome).verdict, Verdict::exception);
    EXPECT_EQ(classify(outcome).type, "exit code " + std::to_string(code));
  }
}

TEST(Signature, MemoryIsTold) {
  for (const char* type : {"bad_alloc", "MemoryError", "torch.cuda.OutOfMemoryError"}) {
    Outcome outcome = failed_in(Stage::run);
    outcome.report.type = type;
    EXPECT_EQ(classify(outcome).verdict, Verdict::memory) << type;
  }
  Outcome outcome = failed_in(Stage::run);
  outcome.report.message = "DefaultCPUAllocator: can't allocate memory: you tried 8 bytes";
  EXPECT_EQ(classify(outcome).verdict, Verdict::memory);
  EXPECT_EQ(describe(classify(outcome)), "runs out of memory in relu while running");
}

TEST(Signature, WrongNumbersAreTold) {
  Outcome outcome = failed_in(Stage::compare);
  outcome.report.accuracy_kind = "values";
  outcome.report.error = 0.5;
  const Signature values = classify(outcome);
  EXPECT_EQ(values.verdict, Verdict::accuracy);
  EXPECT_EQ(values.type, "values");
  outcome.report.error = 0.25;
  EXPECT_TRUE(is_same(values, classify(outcome))) << "how wrong does not identify";
  outcome.report.accuracy_kind = "nan";
  EXPECT_FALSE(is_same(values, classify(outcome)));
  EXPECT_EQ(describe(classify(outcome)), "NaNs are not where eager has them in relu");
}

TEST(Signature, IsTheSameIfAllThatIdentifiesIs) {
  const Signature one = classify(failed_in(Stage::run));
  EXPECT_TRUE(is_same(one, one));
  Outcome other = failed_in(Stage::run);
  other.report.message = "bad size 17";
  EXPECT_TRUE(is_same(one, classify(other)));
  other.report.message = "bad stride 17";
  EXPECT_FALSE(is_same(one, classify(other)));
  EXPECT_FALSE(is_same(one, classify(failed_in(Stage::compile))));
  other = failed_in(Stage::run);
  other.report.type = "ValueError";
  EXPECT_FALSE(is_same(one, classify(other)));
  other = failed_in(Stage::run);
  other.report.op = "torch.ops.aten.mm.default";
  EXPECT_FALSE(is_same(one, classify(other)));
}

TEST(Origin, FollowsTheChainOfStages) {
  const auto captured = graph::parse(
      "class Repro(torch.nn.Module):\n"
      "    def forward(self, x):\n"
      "        linear = torch.mm(x, x)\n"
      "        relu = torch.relu(linear)\n"
      "        relu_1 = torch.relu(relu)\n"
      "        return (relu_1,)\n");
  // Later stages have names of their own, some of which mean another node in the first.
  graph::Graph joint;
  graph::Node& mm = joint.call_function("torch.ops.aten.mm.default", {}, {}, "relu_1");
  mm.meta.provenance = {graph::record_stage(*captured), {captured->find("linear")->id()}};
  graph::Node& made = joint.call_function("torch.ops.aten.ones.default", {}, {}, "relu");
  graph::Graph half;
  graph::Node& copy = half.call_function("torch.ops.aten.mm.default", {}, {}, "relu");
  const auto stage = graph::record_stage(joint);
  copy.meta.provenance = {stage, {mm.id()}};

  const auto name_of = [&](std::string_view name, const graph::Provenance& provenance) {
    const graph::Node* node = find_origin(*captured, name, provenance);
    return node == nullptr ? std::string() : node->name();
  };
  EXPECT_EQ(name_of("relu", copy.meta.provenance), "linear");
  EXPECT_EQ(name_of("relu_1", mm.meta.provenance), "linear");
  EXPECT_EQ(name_of("relu", {stage, {made.id()}}), "") << "made on the way";
  EXPECT_EQ(name_of("relu", {stage, {made.id(), mm.id()}}), "linear");
  EXPECT_EQ(copy.meta.provenance.names(), std::vector<std::string>{"linear"});

  EXPECT_EQ(name_of("relu_1", {}), "relu_1") << "a node of the graph itself";
  EXPECT_EQ(name_of("relu_7", {}), "") << "nothing is guessed from a name";
  EXPECT_EQ(name_of("x", {}), "") << "an input is no call";
  graph::NamedOrigins text;
  EXPECT_EQ(name_of("relu", text.of({"linear"})), "relu") << "the text means another program";
}

}  // namespace
}  // namespace assay::sandbox
