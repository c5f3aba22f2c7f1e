// `assay run FILE --isolated`, `--accuracy`, `--stack torch`: the run is a trial in a process of
// its own, and what is printed is its verdict.
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "cli/choose_backend.h"
#include "cli/commands.h"
#include "cli/signature_json.h"
#include "cli/stock_server.h"
#include "cli/terminal.h"
#include "cli/threads.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"
#include "repro/write.h"
#include "sandbox/server.h"
#include "sandbox/signature.h"

namespace assay::cli {

namespace {

using sandbox::Outcome;
using sandbox::Signature;
using sandbox::Verdict;

// Of the output of a run that fails, which may have printed until it was ended.
constexpr std::size_t kShown = std::size_t{64} << 10U;

sandbox::Trial make_trial(const RunCommand& command, const repro::ReproFile& file) {
  sandbox::Trial trial;
  trial.file = repro::print_repro_file(file);
  const auto directory =
      command.save_directory ? command.save_directory : repro::storage_directory(file);
  if (directory) trial.save_directory = std::filesystem::absolute(*directory).string();
  trial.backend = command.backend;
  trial.accuracy = command.accuracy;
  if (command.accuracy) trial.extras = sandbox::Extras::all();
  trial.extras.all_strides = command.all_strides;
  trial.ignore_non_fp = command.ignore_non_fp;
  trial.autocast = command.autocast || file.autocast;
  trial.inject = command.inject.value_or("");
  trial.seed = command.seed;
  trial.threads = command.threads;
  trial.limits.output_bytes = std::size_t{16} << 20U;  // logs that were asked for, whole
  if (command.timeout) {
    trial.limits.wall_seconds = *command.timeout;
    trial.limits.cpu_seconds = 4 * *command.timeout;
  }
  return trial;
}

// What only a run in this process can do is an error, not silently ignored.
void reject_options(const RunCommand& command) {
  const auto reject = [](bool is_given, const char* option) {
    if (is_given) {
      throw UserError(std::string(option) + " is not supported in an isolated run",
                      "leave out --isolated, --accuracy and --stack torch, or leave out " +
                          std::string(option));
    }
  };
  reject(command.repeat != 1, "--repeat");
  reject(command.backward, "--backward");
  reject(command.output.has_value(), "--output");
  if (is_python_stack(command.stack) && command.inject) {
    throw UserError("--inject works only with Assay's backends",
                    "stock PyTorch has backends with a built-in fault, such as "
                    "relu_compile_error_TESTING_ONLY");
  }
}

// A file that names no data asks for synthesized inputs.
void say_what_is_missing(const repro::ReproFile& file, const RunCommand& command) {
  if (!file.save_directory && !command.save_directory) return;
  const repro::Inputs inputs = repro::load_inputs(file, {command.seed, command.save_directory});
  for (const std::string& note : inputs.notes) {
    (void)std::fprintf(stderr, "note: %s\n", note.c_str());
  }
}

// A failure that one thread does not show is about threads, and a user must know.
bool needs_threads(sandbox::ServerPool& pool, sandbox::Trial trial, const Signature& failure) {
  if (!failure.is_failure() || trial.threads == 1) return false;
  trial.threads = 1;
  const Signature alone = sandbox::classify(pool.run(trial));
  const bool is_verdict = alone.verdict != Verdict::killed && alone.verdict != Verdict::internal;
  return is_verdict && !sandbox::is_same(alone, failure);
}

void print_verdict(const RunCommand& command, const Signature& signature, const Outcome& outcome,
                   bool needs_threads) {
  if (command.json) {
    nlohmann::json report = {{"status", signature.verdict == Verdict::passed ? "ok" : "failed"},
                             {"backend", command.backend},
                             {"stack", command.stack},
                             {"accuracy", command.accuracy},
                             {"threads", command.threads},
                             {"needs_threads", needs_threads},
                             {"signature", to_json(signature)},
                             {"message", outcome.report.message},
                             {"node", outcome.report.node},
                             {"where", outcome.report.accuracy_where},
                             {"error", outcome.report.error},
                             {"tolerance", outcome.report.tolerance},
                             {"not_compared", outcome.report.not_compared},
                             {"seconds", outcome.seconds},
                             {"peak_bytes", outcome.peak_bytes},
                             {"output", outcome.output}};
    // As a run in this process says it.
    if (signature.verdict != Verdict::passed) {
      report["failure"] = {
          {"kind", sandbox::to_string(signature.verdict)},
          {"stage", signature.stage ? std::string(assay::to_string(*signature.stage)) : ""},
          {"backend", command.backend},
          {"type", signature.type},
          {"message", outcome.report.message}};
      if (!outcome.report.node.empty()) report["failure"]["node"] = outcome.report.node;
    }
    using Handler = nlohmann::json::error_handler_t;
    std::printf("%s\n", report.dump(2, ' ', false, Handler::replace).c_str());
    return;
  }
  if (signature.verdict == Verdict::passed) {
    (void)std::fprintf(stderr, "%s", outcome.output.c_str());
    const std::string& left_out = outcome.report.not_compared;
    std::printf("%s %s in %.2f s%s\n", command.backend.c_str(),
                command.accuracy ? "matches eager" : "runs", outcome.seconds,
                left_out.empty() ? "" : ("; " + left_out).c_str());
    return;
  }
  if (signature.verdict == Verdict::invalid) {
    (void)std::fprintf(stderr, "%s", outcome.output.c_str());
    std::printf("Eager itself fails, so this is not a compiler bug:\n  %s\n",
                outcome.report.message.c_str());
    return;
  }
  std::printf("%s %s\n", bold("failed:").c_str(), sandbox::describe(signature).c_str());
  if (!outcome.report.message.empty()) std::printf("  %s\n", outcome.report.message.c_str());
  if (needs_threads) {
    std::printf("it needs threads: it fails with %d, but not with one\n", command.threads);
  }
  const std::size_t skipped = outcome.output.size() - std::min(outcome.output.size(), kShown);
  if (!outcome.output.empty()) {
    std::printf("its last output:\n%s\n", outcome.output.c_str() + skipped);
  }
}

}  // namespace

int run_isolated(RunCommand command) {
  command.threads = take_threads(command.threads);
  const repro::ReproFile file = repro::read_repro_file(command.file);
  choose_backend(command, file);
  const bool is_stock = is_python_stack(command.stack);
  reject_options(command);
  sandbox::Trial trial = make_trial(command, file);
  const std::filesystem::path scratch =
      std::filesystem::temp_directory_path() / ("assay_run_" + std::to_string(getpid()));
  if (is_stock) add_stock_settings(file, command.trust, trial);
  sandbox::ServerPool pool(is_stock
                               ? start_stock_server(scratch, command.backend, command.backend_file)
                               : sandbox::fork_server(),
                           1);
  if (is_stock && !command.json) {
    (void)std::fprintf(stderr, "starting %s ...\n",
                       command.stack == "torch" ? "stock PyTorch" : "Python");
  }
  say_what_is_missing(file, command);
  trial.repeat_eager = command.accuracy;
  const Outcome outcome = pool.run(trial);
  const Signature signature = sandbox::classify(outcome);
  const bool with_threads = needs_threads(pool, trial, signature);
  std::error_code ignored;
  std::filesystem::remove_all(scratch, ignored);
  sandbox::throw_if_internal(signature);
  print_verdict(command, signature, outcome, with_threads);
  return signature.verdict == Verdict::passed ? 0 : 1;
}

}  // namespace assay::cli
