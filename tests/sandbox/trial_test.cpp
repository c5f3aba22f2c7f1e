// Trials and outcomes travel as JSON, and arrive as they were.
#include "sandbox/trial.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "assay/error.h"

namespace assay::sandbox {
namespace {

using nlohmann::json;

TEST(TrialJson, ATrialArrivesAsItWas) {
  Trial trial;
  trial.task = Trial::Task::record;
  trial.file = "class Repro: \"quoted\"\n\\ \u2018";
  trial.save_directory = "/tmp/a b";
  trial.backend = "inductor";
  trial.accuracy = true;
  trial.eager = false;
  trial.backward = false;
  trial.ignore_non_fp = true;
  trial.autocast = true;
  trial.repeat_eager = true;
  trial.private_cache = true;
  trial.inject = "relu:abort";
  trial.seed = 0xFFFFFFFFFFFFFFFF;
  trial.threads = 7;
  trial.until = Stage::compile;
  trial.config = {{"a.b", "1"}, {"c", "\"text\""}, {"d", "null"}};
  trial.setup = "import os";
  trial.command = "grep relu";
  trial.limits = {1.5, 2.5, std::uint64_t{5} << 30U, 77};
  const Trial read = trial_from_json(json::parse(to_json(trial).dump()));
  EXPECT_EQ(to_json(read), to_json(trial));
  EXPECT_EQ(read.task, Trial::Task::record);
  EXPECT_EQ(read.file, trial.file);
  EXPECT_EQ(read.seed, trial.seed);
  EXPECT_EQ(read.config, trial.config);
  EXPECT_EQ(read.limits.memory_bytes, trial.limits.memory_bytes);
}

TEST(Limits, GrowWithTheThreads) {
  const Limits one = {1.5, 2.5, std::uint64_t{5} << 20U, 77};
  const Limits four = limits_for(one, 4);
  EXPECT_EQ(four.wall_seconds, 1.5);
  EXPECT_EQ(four.cpu_seconds, 10);
  EXPECT_GT(four.memory_bytes, one.memory_bytes + (std::uint64_t{3 * 64} << 20U));
  EXPECT_EQ(limits_for(one, 1).memory_bytes, one.memory_bytes);
}

TEST(TrialJson, AnUnknownStageIsRefused) {
  const json answer = {{"exit", 0}, {"report", {{"stage", "dreaming"}}}};
  EXPECT_THROW(outcome_from_json(answer), UserError);
}

TEST(TrialJson, WhatIsLeftOutHasItsDefault) {
  const Trial read = trial_from_json(json::parse(R"({"file": "text", "backend": null})"));
  EXPECT_EQ(read.task, Trial::Task::test);
  EXPECT_EQ(read.backend, "eager");
  EXPECT_TRUE(read.eager);
  EXPECT_EQ(read.limits.wall_seconds, Limits().wall_seconds);
}

TEST(TrialJson, AnOutcomeArrivesAsItWas) {
  Outcome outcome;
  outcome.signal = SIGSEGV;
  outcome.limit = Outcome::Limit::cpu;
  outcome.seconds = 1.25;
  outcome.cpu_seconds = 0.5;
  outcome.peak_bytes = std::uint64_t{6} << 30U;
  outcome.output = "printed";
  const json report = json::parse(R"({"stage": "run", "type": "E", "message": "m", "node": "n",
      "operator": "torch.relu", "suspects": ["a", "b"], "status": "failed", "values": {"x": 1},
      "accuracy": {"kind": "nan", "where": "output[0]", "error": null, "tolerance": 0.5}})");
  const Outcome read = outcome_from_json(json::parse(to_json(outcome, report).dump()));
  EXPECT_EQ(read.exit_code, std::nullopt);
  EXPECT_EQ(read.signal, SIGSEGV);
  EXPECT_EQ(read.limit, Outcome::Limit::cpu);
  EXPECT_EQ(read.seconds, 1.25);
  EXPECT_EQ(read.cpu_seconds, 0.5);
  EXPECT_EQ(read.peak_bytes, outcome.peak_bytes);
  EXPECT_EQ(read.output, "printed");
  EXPECT_EQ(read.report.stage, Stage::run);
  EXPECT_EQ(read.report.op, "torch.relu");
  EXPECT_EQ(read.report.suspects, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read.report.accuracy_kind, "nan");
  EXPECT_EQ(read.report.tolerance, 0.5);
  EXPECT_EQ(json::parse(read.report.values), json::parse(R"({"x": 1})"));
}

TEST(TrialJson, AServersErrorIsAllThereIs) {
  Outcome outcome;
  outcome.server_error = "no fork";
  const Outcome read = outcome_from_json(to_json(outcome, json::object()));
  EXPECT_EQ(read.server_error, "no fork");
  EXPECT_EQ(read.exit_code, std::nullopt);
}

}  // namespace
}  // namespace assay::sandbox
