/// \file Programs for tests: written as text, with their values recorded.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "graph/print.h"
#include "graph/verify.h"
#include "reduce/candidate.h"
#include "reduce/pass.h"
#include "reduce/workspace.h"
#include "sandbox/server.h"
#include "support/temporary_directory.h"

namespace assay::reduce {

/// The class of a graph file; `constructor` and `body` are lines.
inline std::string class_text(const std::string& inputs, const std::vector<std::string>& body,
                              const std::vector<std::string>& constructor = {},
                              const std::string& name = "Repro") {
  std::string text = "class " + name + "(torch.nn.Module):\n";
  text += "    def __init__(self):\n        super().__init__()\n";
  for (const std::string& line : constructor) text += "        " + line + "\n";
  text += "    def forward(self, " + inputs + "):\n";
  for (const std::string& line : body) text += "        " + line + "\n";
  return text;
}

/// The parameters of `forward` and its lines: `(x)`, `relu = torch.relu(x)`, `return (relu,)`.
inline std::vector<std::string> lines_of(const Candidate& program) {
  const std::string text =
      graph::print(*program.graph, {.metadata = false, .stacks = false, .releases = false});
  const std::string head = "def forward(self";
  std::size_t begin = text.rfind(head) + head.size();
  std::vector<std::string> lines;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    const std::size_t first = line.find_first_not_of(" ,");
    if (first != std::string::npos) lines.push_back(line.substr(first));
  }
  if (!lines.empty()) {
    lines[0] = lines[0].ends_with("):") ? lines[0].substr(0, lines[0].size() - 2) : lines[0];
    if (lines[0] == "):") lines[0] = "";
  }
  return lines;
}

using Lines = std::vector<std::string>;

class ReduceTest : public ::testing::Test {
 protected:
  // Servers are forked from here: nothing may have started a thread before.
  static void SetUpTestSuite() { at::set_num_threads(1); }

  /// The program of a graph file's text.
  Candidate load(const std::string& text) {
    file_ = repro::parse_repro_file("import torch\n" + text, "subject.py");
    workspace_ = std::make_unique<Workspace>(directory_.path() / "out", file_, "identity", true);
    return workspace_->load(file_, 0);
  }

  /// The same with the values of its nodes.
  Candidate load_with_values(const std::string& text) {
    Candidate program = load(text);
    program.values = std::make_shared<const Recording>(record(program));
    return program;
  }

  Recording record(const Candidate& program) {
    if (pool_ == nullptr) pool_ = std::make_unique<sandbox::ServerPool>(sandbox::fork_server(), 1);
    sandbox::Trial trial;
    trial.task = sandbox::Trial::Task::record;
    trial.file = workspace_->print(program);
    trial.save_directory = workspace_->directory().string();
    const sandbox::Outcome outcome = pool_->run(trial);
    EXPECT_EQ(outcome.report.status, "passed") << outcome.report.message << trial.file;
    return outcome.report.values.empty() ? Recording() : parse_recording(outcome.report.values);
  }

  /// Keeps the calls with these names.
  std::optional<Candidate> keep(const Candidate& program, const std::set<std::string>& names) {
    std::set<const graph::Node*> kept;
    for (const std::string& name : names) kept.insert(program.graph->find(name));
    auto result = keep_calls(program, kept);
    if (result) expect_sound(*result);
    return result;
  }

  /// All that the pass proposes, in its order.
  std::vector<Candidate> proposals(const Pass& pass, const Candidate& program) {
    std::vector<Candidate> found;
    for (std::size_t round = 0; round < pass.rounds(program); ++round) {
      for (std::size_t i = 0; i < pass.count(program, round); ++i) {
        auto candidate = pass.propose(program, round, i, workspace_->store());
        if (!candidate) continue;
        expect_sound(*candidate);
        found.push_back(std::move(*candidate));
      }
    }
    return found;
  }

  void expect_sound(const Candidate& program) {
    const auto problems = graph::find_problems(*program.graph);
    EXPECT_TRUE(problems.empty()) << problems.front();
    EXPECT_EQ(std::as_const(*program.graph).placeholders().size(), program.inputs.size());
    std::set<std::size_t> used;
    for (const repro::Input& input : program.inputs) {
      if (const auto* tensor = std::get_if<repro::TensorInput>(&input)) {
        ASSERT_LT(tensor->storage, program.storages.size());
        used.insert(tensor->storage);
      }
    }
    EXPECT_EQ(used.size(), program.storages.size()) << "a storage that nobody uses";
    const std::string text = workspace_->print(program);
    const repro::ReproFile read = repro::parse_repro_file(text, "candidate.py");
    EXPECT_EQ(
        graph::print(*read.graph, {.metadata = false, .stacks = false, .releases = false}),
        graph::print(*program.graph, {.metadata = false, .stacks = false, .releases = false}));
    EXPECT_EQ(read.inputs.size(), program.inputs.size());
  }

  testing::TemporaryDirectory directory_;
  repro::ReproFile file_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<sandbox::ServerPool> pool_;
};

inline const repro::TensorInput& tensor_of(const Candidate& program, std::size_t input) {
  return std::get<repro::TensorInput>(program.inputs[input]);
}

}  // namespace assay::reduce
