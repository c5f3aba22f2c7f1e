// `assay reduce FILE`: finds the smallest program that still fails the same way.
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "backends/fault.h"
#include "cli/choose_backend.h"
#include "cli/commands.h"
#include "cli/progress_line.h"
#include "cli/signature_json.h"
#include "cli/stock_server.h"
#include "cli/terminal.h"
#include "cli/threads.h"
#include "reduce/pass.h"
#include "reduce/reduce.h"
#include "repro/repro_file.h"

namespace assay::cli {

namespace {

using reduce::Reduced;

const char* status_name(Reduced::Status status) {
  switch (status) {
    case Reduced::Status::reduced:
      return "reduced";
    case Reduced::Status::passes:
      return "passes";
    case Reduced::Status::eager_fails:
      return "eager_fails";
    case Reduced::Status::killed:
      return "killed";
  }
  return "";
}

nlohmann::json named_call(const std::optional<reduce::NamedCall>& named) {
  if (!named) return nullptr;
  return {{"node", named->node}, {"operator", named->op}, {"call", named->call}};
}

void print_json(const Reduced& result) {
  nlohmann::json others = nlohmann::json::array();
  for (const reduce::OtherFailure& other : result.others) {
    others.push_back({{"file", other.file.string()}, {"signature", to_json(other.signature)}});
  }
  nlohmann::json report = {{"status", status_name(result.status)},
                           {"signature", to_json(result.signature)},
                           {"message", result.message},
                           {"calls_before", result.calls_before},
                           {"calls", result.calls},
                           {"elements_before", result.elements_before},
                           {"elements", result.elements},
                           {"trials", result.trials},
                           {"killed_trials", result.killed_trials},
                           {"seconds", result.seconds},
                           {"resumed", result.is_resumed},
                           {"notes", result.notes},
                           {"runs", result.runs},
                           {"reproduced", result.reproduced},
                           {"flaky", result.is_flaky()},
                           {"threads", result.threads},
                           {"needs_threads", result.needs_threads},
                           {"ignored_non_fp", result.ignored_non_fp},
                           {"not_compared", result.not_compared},
                           {"other", std::move(others)}};
  report["wrong"] = named_call(result.wrong);
  if (result.wrong) report["wrong"]["kind"] = result.wrong_kind;
  report["noticed"] = named_call(result.noticed);
  if (!result.pipeline_step.empty()) report["pipeline_step"] = result.pipeline_step;
  if (!result.file.empty()) report["file"] = result.file.string();
  if (result.passing) report["passing"] = result.passing->string();
  using Handler = nlohmann::json::error_handler_t;
  std::printf("%s\n", report.dump(2, ' ', false, Handler::replace).c_str());
}

// As the user would write it.
std::string shown(const std::filesystem::path& path) {
  const std::string relative = path.lexically_proximate(std::filesystem::current_path()).string();
  return relative.starts_with("..") ? path.string() : relative;
}

void print_text(const Reduced& result) {
  std::printf("%s\n", bold(sandbox::describe(result.signature)).c_str());
  std::printf(
      "%zu of %zu calls and %lld of %lld input elements are left; %lld trials in %.1f s (%.0f/s)\n",
      result.calls, result.calls_before, static_cast<long long>(result.elements),
      static_cast<long long>(result.elements_before), static_cast<long long>(result.trials),
      result.seconds, static_cast<double>(result.trials) / std::max(result.seconds, 1e-3));
  std::printf("rerun, it fails in %d of %d runs%s\n", result.reproduced, result.runs,
              result.is_flaky() ? ": the failure is flaky" : "");
  if (result.wrong && result.calls > 1) {
    std::printf("wrong (%s): %s\n", result.wrong_kind.c_str(), result.wrong->call.c_str());
    if (result.noticed) std::printf("noticed by: %s\n", result.noticed->call.c_str());
  }
  if (!result.pipeline_step.empty()) {
    std::printf("pipeline step: %s\n", result.pipeline_step.c_str());
  }
  if (result.needs_threads) {
    std::printf("it needs threads: it fails with %d, but not with one\n", result.threads);
  }
  if (result.ignored_non_fp) {
    std::printf("integer and bool results of candidates were not compared\n");
  }
  if (result.killed_trials > 0) {
    std::printf("%lld trials were killed externally and repeated\n",
                static_cast<long long>(result.killed_trials));
  }
  for (const reduce::OtherFailure& other : result.others) {
    std::printf("another failure found: %s\n  %s\n", sandbox::describe(other.signature).c_str(),
                shown(other.file).c_str());
  }
  if (result.passing) {
    std::printf("the nearest program that passes: %s\n", shown(*result.passing).c_str());
  }
  std::printf("\n%s\n%s\n", result.graph.c_str(), shown(result.file).c_str());
}

int finish(const ReduceCommand& command, const Reduced& result) {
  for (const std::string& note : result.notes) {
    (void)std::fprintf(stderr, "note: %s\n", note.c_str());
  }
  if (result.known_verdicts > 0) {
    (void)std::fprintf(stderr, "resumed with %zu verdicts from an earlier run\n",
                       result.known_verdicts);
  }
  if (command.json) print_json(result);
  switch (result.status) {
    case Reduced::Status::reduced:
      if (!command.json) print_text(result);
      return 0;
    case Reduced::Status::passes:
      if (!command.json) {
        const std::string& judge = command.check.empty() ? command.backend : command.check;
        std::printf("%s does not fail with %s in %lld runs: nothing to reduce\n",
                    command.file.c_str(), judge.c_str(), static_cast<long long>(result.trials - 1));
        if (!result.not_compared.empty()) std::printf("%s\n", result.not_compared.c_str());
      }
      return 1;
    case Reduced::Status::eager_fails:
      if (!command.json) {
        std::printf("Eager itself fails, so this is not a compiler bug:\n  %s\n",
                    result.message.c_str());
      }
      return 1;
    case Reduced::Status::killed:
      if (!command.json) {
        std::printf("the reduction is inconclusive, and no repro was written: %s\n",
                    result.message.c_str());
      }
      return 1;
  }
  return 1;
}

std::string best_file;  // NOLINT: a signal handler needs it

void on_interrupt(int) {
  const auto say = [](std::string_view text) {
    (void)!write(STDERR_FILENO, text.data(), text.size());
  };
  say("\nstopped");
  if (access(best_file.c_str(), F_OK) == 0) {
    say("; the smallest program so far is ");
    say(best_file);
  }
  say("\nrun the same command again to resume\n");
  _exit(130);
}

// What is found so far is on disk, and the same command resumes from there.
void say_how_to_resume(const std::filesystem::path& output) {
  best_file = (output / "repro.py").string();
  struct sigaction action {};
  action.sa_handler = &on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Compiling takes Assay a part of a second, and stock PyTorch minutes.
void set_limits(const ReduceCommand& command, reduce::Options& options) {
  const bool is_stock = is_python_stack(command.stack) || !command.check.empty();
  sandbox::Limits& limits = options.trial.limits;
  limits.wall_seconds = command.timeout.value_or(is_stock ? 300 : 5);
  limits.cpu_seconds = 4 * limits.wall_seconds;
  const std::uint64_t megabytes = command.memory_megabytes.value_or(is_stock ? 8192 : 1024);
  limits.memory_bytes = megabytes << 20U;
  if (!command.timeout && !command.memory_megabytes) options.limit_factor = 10;
}

// The command that shows the failure of a result.
std::string rerun(const ReduceCommand& command) {
  if (!command.check.empty()) return command.check + " repro.py";
  if (!command.backend_server.empty() && command.stack != "torch") {
    return "run the program again: only its process has the backend " + command.backend;
  }
  std::string text = "assay run repro.py";
  if (command.backend_file.empty()) {
    text += " --backend " + command.backend;
    if (command.stack == "torch") text += " --stack torch";
  } else {
    text += " --backend-file " + std::filesystem::absolute(command.backend_file).string();
  }
  if (!command.inject.empty()) text += " --inject " + command.inject;
  if (command.ignore_non_fp) text += " --ignore-non-fp";
  if (command.all_strides) text += " --all-strides";
  return text + " --accuracy";
}

reduce::Options make_options(const ReduceCommand& command, const repro::ReproFile& file) {
  reduce::Options options;
  options.trial.backend = command.backend;
  options.trial.backward = !command.only_forward;
  options.trial.ignore_non_fp = command.ignore_non_fp;
  options.trial.extras.all_strides = command.all_strides;
  options.strict_candidates = file.accuracy == "'strict'";
  options.trial.autocast = file.autocast;
  options.trial.inject = command.inject;
  options.trial.command = command.check;
  options.trial.seed = command.seed;
  if (command.check.empty()) options.trial.threads = command.threads;
  set_limits(command, options);
  options.output = command.output;
  options.rerun = rerun(command);
  options.restart = command.restart;
  options.keep_passing = command.keep_passing;
  options.passes = command.passes;
  options.confirmations = command.confirmations;
  // Compiling nearly all of a model once more can take stock PyTorch longer than the reduction.
  options.look_for_others = !is_python_stack(command.stack) || command.others;
  options.early = is_python_stack(command.stack);
  const bool asks_for_accuracy = file.accuracy != "False" && file.accuracy != "''";
  if (command.accuracy || asks_for_accuracy) options.accuracy = reduce::Options::Accuracy::always;
  if (!command.check.empty()) options.accuracy = reduce::Options::Accuracy::never;
  return options;
}

int list_passes(bool as_json) {
  nlohmann::json list = nlohmann::json::array();
  for (const reduce::Pass& pass : reduce::all_passes()) {
    list.push_back({{"name", pass.name}, {"description", pass.description}});
    if (as_json) continue;
    std::printf("%-10s %s\n", std::string(pass.name).c_str(),
                std::string(pass.description).c_str());
  }
  if (as_json) std::printf("%s\n", list.dump(2).c_str());
  return 0;
}

void check_passes(const std::vector<std::string>& names) {
  std::string all;
  for (const reduce::Pass& pass : reduce::all_passes()) {
    all += (all.empty() ? "" : ", ") + std::string(pass.name);
  }
  for (const std::string& name : names) {
    const auto passes = reduce::all_passes();
    if (std::ranges::find(passes, name, &reduce::Pass::name) == passes.end()) {
      throw UserError("unknown pass '" + name + "'", "the passes are " + all);
    }
  }
}

sandbox::StartServer start_server(const ReduceCommand& command) {
  if (!command.backend_server.empty()) return sandbox::connect_to_server(command.backend_server);
  if (command.check.empty() && is_python_stack(command.stack)) {
    return start_stock_server(command.output, command.backend, command.backend_file);
  }
  return sandbox::fork_server();
}

}  // namespace

int reduce_file(ReduceCommand command) {
  command.threads = take_threads(command.threads);
  if (command.list_passes) return list_passes(command.json);
  if (command.file.empty()) throw UserError("FILE is required", "assay reduce repro.py");
  check_passes(command.passes);
  if (!command.inject.empty()) backends::parse_faults(command.inject);
  const repro::ReproFile file = repro::read_repro_file(command.file);
  // A command judges by itself, whatever it tests.
  if (!command.backend_server.empty() && command.stack != "torch") {
    command.stack = "python";
    if (command.backend.empty()) command.backend = file.backend;
  } else if (command.check.empty()) {
    choose_backend(command, file);
  }
  const bool is_stock = is_python_stack(command.stack) && command.check.empty();
  if (is_stock && !command.inject.empty()) {
    throw UserError("--inject works only with Assay's backends",
                    "stock PyTorch has backends with a built-in fault, such as "
                    "relu_compile_error_TESTING_ONLY");
  }
  if (command.output.empty()) command.output = command.file.stem().string() + "_reduced";
  reduce::Options options = make_options(command, file);
  if (is_stock) add_stock_settings(file, command.trust, options.trial);
  say_how_to_resume(command.output);
  sandbox::ServerPool pool(start_server(command), command.jobs);
  ProgressLine line(command.json);
  if (is_stock)
    line.say(command.stack == "torch" ? "starting stock PyTorch ..." : "starting Python ...");
  const Reduced result = reduce::reduce(
      file, options, pool, [&](const reduce::Progress& progress) { line.show(progress); });
  line.clear();
  return finish(command, result);
}

}  // namespace assay::cli
