// The `assay` command: reads the arguments and calls one of cli/commands.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "aten/failure.h"
#include "backends/plugins.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "config/config.h"
#include "config/observe_settings.h"
#include "observe/timings.h"
#include "repro/debug_directory.h"

namespace {

namespace cli = assay::cli;
namespace observe = assay::observe;
using assay::UserError;

constexpr int kUsageError = 2;
constexpr int kInternalError = 3;

constexpr const char* kAllStrides =
    "With --accuracy and --stack torch: compare strides that eager does not promise, too";

constexpr const char* kExamples = R"(examples:
  assay run repro.py                    run a graph file and describe its results
  assay run repro.py --repeat 20 --json the same, for a script, with timings
  assay run repro.py --backend aot_eager --backward
  assay diagnose train.py --epochs 1    why does this script fail under torch.compile?
  assay reduce minifier_launcher.py     the smallest program that still fails the same way
  assay show minifier_launcher.py       what is in a graph file
  assay show repro.py --dot | dot -Tsvg > graph.svg
  TORCH_LOGS="graph_code" assay run repro.py
exit codes: 0 success, 1 the program under test fails, 2 bad usage or bad file, 3 a bug in Assay)";

struct Options {
  cli::RunCommand run;
  cli::ShowCommand show;
  cli::ReduceCommand reduce;
  cli::AnalyzeCommand analyze;
  cli::BundleCommand bundle;
  cli::CoverageCommand coverage;
  cli::CacheCommand cache;
  cli::RerunCommand rerun;
  std::string save_directory;
  std::string output;
  std::string inject;
  std::string trace;
  std::vector<std::string> plugins;
  bool timings = false;
  bool json = false;
};

CLI::App* add_run(CLI::App& app, Options& options) {
  CLI::App* run = app.add_subcommand("run", "Run a graph file without Python");
  run->add_option("FILE", options.run.file,
                  "repro.py, minifier_launcher.py, fx_graph_runnable.py, ...")
      ->required();
  run->add_option("--backend", options.run.backend,
                  "The backend that runs the graph; `assay backends` lists them")
      ->capture_default_str();
  run->add_flag("--backward", options.run.backward,
                "Also run backward from the sum of the results, and show the inputs' gradients");
  run->add_flag("--profile", options.run.profile,
                "With the backend native: the time of every kernel and ATen call");
  run->add_option("--inject", options.inject,
                  "Inject a fault, OPERATOR:KIND, e.g. relu:accuracy; the kinds are\n"
                  "compile_error, runtime_error, accuracy, nan, dtype, second_call, strides,\n"
                  "aliasing, mutation, no_exception, segfault, abort, hang, oom;\n"
                  "relu:accuracy:threads happens only with more than one thread");
  run->add_option("--threads", options.run.threads, "Threads inside operators")
      ->check(CLI::Range(1, 1024));
  run->add_option("--repeat", options.run.repeat, "Run this many times and time each")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  run->add_option("--seed", options.run.seed, "Seed for synthesized inputs and random operators")
      ->capture_default_str();
  run->add_option("--save-dir", options.save_directory,
                  "Directory of the inputs' storages, instead of the one in the file");
  run->add_option("--output", options.output, "Save the results here, for torch.load");
  run->add_flag("--accuracy", options.run.accuracy,
                "Compare with eager and its float64 reference; implies --isolated");
  run->add_flag("--ignore-non-fp", options.run.ignore_non_fp,
                "With --accuracy: compare floating-point results only")
      ->needs("--accuracy");
  run->add_flag("--all-strides", options.run.all_strides, kAllStrides)->needs("--accuracy");
  run->add_flag("--isolated", options.run.isolated,
                "Run in a separate process with limits, and report how it ends");
  run->add_option("--stack", options.run.stack,
                  "The stack of the backend: assay, torch or python; the last two imply --isolated")
      ->check(CLI::IsMember({"assay", "torch", "python"}))
      ->capture_default_str();
  run->add_option("--backend-file", options.run.backend_file,
                  "A backend written in Python that was saved by value; a pickle, so trusted");
  run->add_flag("--autocast", options.run.autocast, "Isolated: enable autocast");
  run->add_option("--timeout", options.run.timeout, "Isolated: time limit in seconds")
      ->check(CLI::PositiveNumber);
  run->add_flag("--trust", options.run.trust,
                "With --stack torch: execute the Python lines before the file's graph");
  run->add_flag("--json", options.json, "Print one JSON object");
  return run;
}

CLI::App* add_reduce(CLI::App& app, Options& options) {
  cli::ReduceCommand& command = options.reduce;
  CLI::App* reduce = app.add_subcommand(
      "reduce", "Find the smallest program that fails the same way as a graph file");
  reduce->add_option("FILE", command.file, "repro.py, minifier_launcher.py, ...");
  reduce->add_option("--backend", command.backend,
                     "The compiler under test (default: what the file names, else native, or "
                     "inductor for torch); module:function for one written in Python");
  reduce
      ->add_option("--stack", command.stack,
                   "The stack of the compiler under test: assay, torch or python")
      ->check(CLI::IsMember({"assay", "torch", "python"}))
      ->capture_default_str();
  reduce->add_option("--backend-file", command.backend_file,
                     "A backend written in Python that was saved by value; a pickle, so trusted");
  reduce->add_option("--backend-server", command.backend_server,
                     "The Unix socket of a trial server in the process that has the backend, or "
                     "with --stack torch of one that has stock PyTorch loaded");
  reduce->add_option("--output", command.output,
                     "Directory for the result and other findings (default: FILE_reduced)");
  CLI::Option* accuracy =
      reduce->add_flag("--accuracy", command.accuracy,
                       "Compare with eager in every trial (default: only if nothing else fails)");
  reduce->add_flag("--all-strides", command.all_strides, kAllStrides)->needs(accuracy);
  reduce->add_option("--check", command.check,
                     "Test candidates with this shell command, which gets the file's name: exit "
                     "code 0 is a pass, 125 is inconclusive, any other is the failure");
  reduce->add_option("-j,--jobs", command.jobs, "Number of parallel trials")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  reduce
      ->add_option("--threads", command.threads,
                   "Threads inside operators (one if the failure reproduces with one)")
      ->check(CLI::Range(1, 1024));
  reduce
      ->add_option("--timeout", command.timeout,
                   "Time limit of one trial in seconds (default: based on eager's time)")
      ->check(CLI::PositiveNumber);
  reduce->add_option("--memory", command.memory_megabytes,
                     "Memory limit of one trial in megabytes (default: based on eager's memory)");
  reduce->add_option("--confirmations", command.confirmations, "How many times to rerun the result")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  reduce->add_option("--seed", command.seed, "Seed for synthesized inputs and random operators")
      ->capture_default_str();
  reduce->add_option("--inject", command.inject, "Inject a fault, as for run");
  reduce->add_option("--passes", command.passes, "Run only these passes, separated by commas")
      ->delimiter(',');
  reduce->add_flag("--only-forward", command.only_forward, "Do not run backward");
  reduce->add_flag("--ignore-non-fp", command.ignore_non_fp, "Compare floating-point results only");
  reduce->add_flag("--restart", command.restart, "Start over instead of resuming an earlier run");
  reduce->add_flag("--keep-passing", command.keep_passing,
                   "Also save the nearest program that does not fail");
  reduce->add_flag("--others", command.others,
                   "With --stack torch: at the end also try the program without the faulty calls");
  reduce->add_flag("--trust", command.trust,
                   "With --stack torch: execute the Python lines before the file's graph");
  reduce->add_flag("--list-passes", command.list_passes, "List the passes and stop");
  reduce->add_flag("--json", options.json, "Print one JSON object");
  reduce->footer(
      "exit codes: 0 reduced; 1 it does not fail, eager fails too, or trials were killed "
      "externally; 2 bad usage or bad file; 130 interrupted, the same command resumes");
  return reduce;
}

CLI::App* add_analyze(CLI::App& app, Options& options) {
  cli::AnalyzeCommand& command = options.analyze;
  CLI::App* analyze =
      app.add_subcommand("analyze", "Find the first call that a backend computes incorrectly");
  analyze->add_option("FILE", command.file, "A graph file")->required();
  analyze->add_option("--backend", command.backend,
                      "Runs each call on its own (default: what the file names, else native)");
  analyze->add_option("--inject", command.inject, "Inject a fault, as for run");
  analyze->add_option("--seed", command.seed, "Seed for synthesized inputs and random operators")
      ->capture_default_str();
  analyze->add_flag("--json", options.json, "Print one JSON object");
  return analyze;
}

CLI::App* add_bundle(CLI::App& app, Options& options) {
  CLI::App* bundle = app.add_subcommand(
      "bundle", "Embed the input data in a graph file, to send it as one attachment");
  bundle->add_option("FILE", options.bundle.file, "A graph file")->required();
  bundle->add_option("--output", options.bundle.output, "Where to write it (default: print it)");
  return bundle;
}

CLI::App* add_show(CLI::App& app, Options& options) {
  CLI::App* show =
      app.add_subcommand("show", "Summarize a graph file: operators, shapes, largest tensors");
  show->add_option("FILE", options.show.file, "A graph file")->required();
  auto* forms = show->add_option_group("form");
  forms->add_flag("--dot", options.show.dot, "Print the graph in Graphviz's DOT format");
  forms->add_flag("--code", options.show.code, "Print the graph as a Python program");
  forms->add_flag("--json", options.json, "Print one JSON object");
  forms->require_option(0, 1);
  show->add_flag("!--no-run", options.show.run,
                 "Do not run the graph to infer shapes that the file omits");
  return show;
}

CLI::App* add_coverage(CLI::App& app, Options& options) {
  CLI::App* coverage = app.add_subcommand(
      "coverage", "List which operators become kernels, of a graph file or at all");
  coverage->add_option("FILE", options.coverage.file, "A graph file");
  coverage->add_flag("--json", options.json, "Print one JSON array");
  return coverage;
}

CLI::App* add_cache(CLI::App& app, Options& options) {
  CLI::App* cache = app.add_subcommand("cache", "Compiled kernels on disk");
  cache->add_option("ACTION", options.cache.action, "stat, clear or path")
      ->check(CLI::IsMember({"stat", "clear", "path"}))
      ->capture_default_str();
  cache->add_flag("--json", options.json, "Print one JSON object");
  return cache;
}

CLI::App* add_rerun(CLI::App& app, Options& options) {
  cli::RerunCommand& command = options.rerun;
  CLI::App* rerun = app.add_subcommand(
      "rerun", "Compile a debug directory's output_code.cpp, run it, and compare with eager");
  rerun->add_option("DIR", command.directory, "torchinductor/model__0_forward_1.0, or the like")
      ->required();
  rerun->add_option("--repeat", command.repeat, "Run this many times; the fastest counts")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  rerun->add_option("--threads", command.threads, "Threads inside kernels and operators")
      ->check(CLI::Range(1, 1024));
  rerun->add_option("--seed", command.seed, "Seed for synthesized inputs and random operators")
      ->capture_default_str();
  rerun->add_flag("--json", options.json, "Print one JSON object");
  return rerun;
}

// What ends a command before it has a verdict on a program is a mistake in the request, or a bug.
int report_exception(const Options& options) {
  const assay::aten::FailureDetail failure = assay::aten::describe_exception();
  const bool is_users = failure.blame == assay::aten::FailureDetail::Blame::user;
  std::string text = failure.text;
  // InternalError already asks for a report.
  if (!is_users && failure.type != "InternalError") {
    text = "internal error: " + failure.type + ": " + text +
           "\n  This is a bug in Assay; please report it together with the file you ran.";
  }
  if (options.json) {
    const bool is_setting = failure.type == "SettingsError";
    const char* kind = is_setting ? "settings" : is_users ? "user" : "internal";
    nlohmann::json report = {{"status", "error"},
                             {"kind", kind},
                             {"type", failure.type},
                             {"message", is_users ? failure.message : text}};
    if (!failure.hint.empty()) report["hint"] = failure.hint;
    if (failure.where.line > 0) {
      report["file"] = failure.where.file;
      report["line"] = failure.where.line;
      report["column"] = failure.where.column;
    }
    using Handler = nlohmann::json::error_handler_t;
    std::printf("%s\n", report.dump(2, ' ', false, Handler::replace).c_str());
  }
  std::fprintf(stderr, "%s %s\n", cli::red("error:").c_str(), text.c_str());
  return is_users ? kUsageError : kInternalError;
}

int parse_and_run(int argc, char** argv, Options& options) {
  CLI::App app("Assay: find, reproduce and reduce failures of compiled PyTorch programs", "assay");
  app.set_version_flag("--version", cli::version_text());
  app.footer(kExamples);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.add_option("--trace", options.trace, "Write a Chrome trace (Perfetto) of the run");
  app.add_flag("--timings", options.timings, "Print how long each phase took, to stderr");
  app.add_option("--plugin", options.plugins,
                 "Load a shared library that registers backends; also ASSAY_PLUGINS=FILE:FILE")
      ->allow_extra_args(false);
  app.fallthrough();
  CLI::App* run = add_run(app, options);
  // Its arguments are the driver's to parse, see main().
  app.add_subcommand("diagnose", "Find out why a Python script fails under torch.compile");
  CLI::App* reduce = add_reduce(app, options);
  CLI::App* analyze = add_analyze(app, options);
  CLI::App* bundle = add_bundle(app, options);
  CLI::App* show = add_show(app, options);
  CLI::App* rerun = add_rerun(app, options);
  CLI::App* coverage = add_coverage(app, options);
  CLI::App* cache = add_cache(app, options);
  CLI::App* report = app.add_subcommand(
      "report", "Print the report of a directory that diagnose or reduce has written");
  std::filesystem::path report_directory;
  report->add_option("DIR", report_directory, "The result directory")->required();
  report->add_flag("--json", options.json, "Print one JSON object");
  CLI::App* logs = app.add_subcommand("logs", "List the names that TORCH_LOGS accepts");
  logs->add_flag("--json", options.json, "Print one JSON array");
  CLI::App* passes = app.add_subcommand("passes", "List the graph passes");
  passes->add_flag("--json", options.json, "Print one JSON array");
  CLI::App* backends = app.add_subcommand("backends", "List the backends");
  backends->add_flag("--json", options.json, "Print one JSON array");
  CLI::App* config = app.add_subcommand("config", "List every setting, its value and its origin");
  config->add_flag("--json", options.json, "Print one JSON array");
  CLI::App* decompositions =
      app.add_subcommand("decompositions", "List the operators that are decomposed when compiled");
  decompositions->add_flag("--json", options.json, "Print one JSON array");
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // CLI11 reports only that a command is missing, even if it is misspelled.
    if (!app.remaining().empty() && app.get_subcommands().empty()) {
      const std::string found = app.remaining().front();
      throw UserError(
          (found.starts_with('-') ? "unknown option '" : "unknown command '") + found + "'",
          "the commands are: run, diagnose, reduce, analyze, bundle, report, show, rerun, "
          "coverage, "
          "cache, backends, config, decompositions, logs, passes");
    }
    app.exit(error);
    return kUsageError;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }

  observe::Settings settings = assay::config::observe_settings();
  if (!options.trace.empty()) settings.trace = options.trace;
  settings.timings = settings.timings || options.timings;
  observe::configure(settings);
  assay::repro::start_capture_log();
  assay::backends::load_plugins(assay::backends::split_plugins(assay::config::get<"plugins">()));
  assay::backends::load_plugins(options.plugins);

  int code = 0;
  if (run->parsed()) {
    options.run.json = options.json;
    if (!options.save_directory.empty()) options.run.save_directory = options.save_directory;
    if (!options.output.empty()) options.run.output = options.output;
    if (run->count("--inject") > 0) options.run.inject = options.inject;
    const bool is_python = options.run.stack != "assay" || !options.run.backend_file.empty() ||
                           options.run.backend.find(':') != std::string::npos;
    const bool is_isolated = options.run.isolated || options.run.accuracy || is_python;
    if (is_isolated && run->count("--backend") == 0) options.run.backend.clear();
    code = is_isolated ? cli::run_isolated(options.run) : cli::run(options.run);
  } else if (reduce->parsed()) {
    options.reduce.json = options.json;
    code = cli::reduce_file(options.reduce);
  } else if (analyze->parsed()) {
    options.analyze.json = options.json;
    code = cli::analyze(options.analyze);
  } else if (bundle->parsed()) {
    code = cli::bundle(options.bundle);
  } else if (show->parsed()) {
    options.show.json = options.json;
    code = cli::show(options.show);
  } else if (rerun->parsed()) {
    options.rerun.json = options.json;
    code = cli::rerun(options.rerun);
  } else if (coverage->parsed()) {
    options.coverage.json = options.json;
    code = cli::coverage(options.coverage);
  } else if (cache->parsed()) {
    options.cache.json = options.json;
    code = cli::cache(options.cache);
  } else if (report->parsed()) {
    code = cli::report(report_directory, options.json);
  } else if (logs->parsed()) {
    code = cli::logs(options.json);
  } else if (passes->parsed()) {
    code = cli::passes(options.json);
  } else if (backends->parsed()) {
    code = cli::backends(options.json);
  } else if (config->parsed()) {
    code = cli::config(options.json);
  } else if (decompositions->parsed()) {
    code = cli::decompositions(options.json);
  }
  if (options.timings) std::fprintf(stderr, "%s", observe::compile_times().c_str());
  return code;
}

int run_command(int argc, char** argv) {
  Options options;
  try {
    if (argc > 1 && std::string_view(argv[1]) == "diagnose") {
      return cli::diagnose({argv + 2, argv + argc});
    }
    return parse_and_run(argc, argv, options);
  } catch (const observe::HelpRequested& help) {
    std::printf("%s\n", help.what());
    return 0;
  } catch (...) {
    return report_exception(options);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = run_command(argc, argv);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return code;  // what they have found they say at a normal exit
#else
  // libtorch takes a tenth of a second to unregister its operators.
  (void)std::fflush(nullptr);
  std::quick_exit(code);
#endif
}
