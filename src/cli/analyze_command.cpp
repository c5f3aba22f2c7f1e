// `assay analyze FILE`: names the first call that a backend computes wrongly.
#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include "cli/choose_backend.h"
#include "cli/commands.h"
#include "cli/signature_json.h"
#include "cli/terminal.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"
#include "sandbox/server.h"
#include "sandbox/signature.h"

namespace assay::cli {

namespace {

using sandbox::Verdict;

void print_node(const repro::ReproFile& file, const sandbox::Outcome& outcome) {
  const sandbox::Report& report = outcome.report;
  const graph::Node* node = file.graph->find(report.node);
  std::printf("%s is the first call with a wrong result\n", bold(report.node).c_str());
  std::printf("  %s\n", report.message.c_str());
  if (node == nullptr) return;
  for (const graph::StackFrame& frame : node->meta.stack) {
    std::printf("  File \"%s\", line %lld, in %s\n    %s\n", frame.file.c_str(),
                static_cast<long long>(frame.line), frame.function.c_str(), frame.text.c_str());
  }
}

}  // namespace

int analyze(AnalyzeCommand command) {
  at::set_num_threads(1);  // the server is forked from here
  const repro::ReproFile file = repro::read_repro_file(command.file);
  command.backend = choose_backend(command.backend, file, "assay");
  sandbox::Trial trial;
  trial.task = sandbox::Trial::Task::analyze;
  trial.file = file.source->text;
  if (const auto directory = repro::storage_directory(file)) {
    trial.save_directory = std::filesystem::absolute(*directory).string();
  }
  trial.backend = command.backend;
  trial.inject = command.inject;
  trial.seed = command.seed;
  sandbox::ServerPool pool(sandbox::fork_server(), 1);
  const sandbox::Outcome outcome = pool.run(trial);
  const sandbox::Signature signature = sandbox::classify(outcome);
  sandbox::throw_if_internal(signature);
  if (command.json) {
    const nlohmann::json report = {{"status", sandbox::to_string(signature.verdict)},
                                   {"node", outcome.report.node},
                                   {"operator", outcome.report.op},
                                   {"where", outcome.report.accuracy_where},
                                   {"error", outcome.report.error},
                                   {"tolerance", outcome.report.tolerance},
                                   {"message", outcome.report.message},
                                   {"signature", to_json(signature)}};
    using Handler = nlohmann::json::error_handler_t;
    std::printf("%s\n", report.dump(2, ' ', false, Handler::replace).c_str());
  } else if (signature.verdict == Verdict::accuracy) {
    print_node(file, outcome);
  } else if (signature.verdict == Verdict::passed) {
    std::printf("every call on its own matches eager\n");
  } else {
    std::printf("%s\n", sandbox::describe(signature).c_str());
  }
  return signature.verdict == Verdict::passed ? 0 : 1;
}

}  // namespace assay::cli
