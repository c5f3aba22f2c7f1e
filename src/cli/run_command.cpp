// `assay run FILE`: runs a graph file and describes what came out.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "aten/runner.h"
#include "cli/commands.h"
#include "cli/tensor_summary.h"
#include "cli/terminal.h"
#include "graph/print.h"
#include "observe/observe.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"

namespace assay::cli {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

struct Outcome {
  aten::Value results;
  std::vector<double> seconds;
};

// Inputs are made anew for each run: a graph may change them.
Outcome run_repeatedly(const RunCommand& command, const repro::ReproFile& file,
                       repro::Inputs& inputs) {
  const repro::InputOptions options{command.seed, command.save_directory};
  // Attributes with random contents are drawn first, as when stock PyTorch makes the module.
  repro::seed_generator(command.seed);
  const aten::GraphRunner runner(*file.graph, file.source.get());
  Outcome outcome;
  for (int i = 0; i < command.repeat; ++i) {
    inputs = repro::load_inputs(file, options);
    repro::seed_generator(command.seed);
    const observe::Phase phase("run", observe::Component::aten);
    const auto begin = Clock::now();
    outcome.results = runner.run(inputs.values);
    outcome.seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return outcome;
}

void save_results(const std::filesystem::path& path, const aten::Value& results) {
  const std::vector<char> data = torch::jit::pickle_save(aten::to_ivalue(results));
  std::ofstream stream(path, std::ios::binary);
  stream.write(data.data(), static_cast<std::streamsize>(data.size()));
  if (!stream.flush()) throw UserError(path.string() + ": the results cannot be written");
}

json describe_file(const repro::ReproFile& file, const repro::Inputs& inputs) {
  return {{"file", file.source->file},
          {"stage", to_string(file.stage)},
          {"nodes", file.graph->size()},
          {"inputs",
           {{"count", file.inputs.size()},
            {"original", inputs.made_up_storages == 0},
            {"loaded_storages", inputs.loaded_storages},
            {"made_up_storages", inputs.made_up_storages},
            {"notes", inputs.notes}}}};
}

void print_failure(const RunCommand& command, const repro::ReproFile& file,
                   const repro::Inputs& inputs, const aten::OperatorError& error) {
  if (command.json) {
    json report = describe_file(file, inputs);
    report["status"] = "failed";
    report["failure"] = {{"kind", "exception"},
                         {"stage", command.backend},
                         {"node", error.node_name()},
                         {"call", error.call()},
                         {"message", error.message()}};
    auto& stack = report["failure"]["stack"] = json::array();
    for (const graph::StackFrame& frame : error.stack()) {
      stack.push_back({{"file", frame.file},
                       {"line", frame.line},
                       {"function", frame.function},
                       {"text", frame.text}});
    }
    std::printf("%s\n", report.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    return;
  }
  std::fprintf(stderr, "%s %s\n", red("failed:").c_str(), error.what());
}

void print_success(const RunCommand& command, const repro::ReproFile& file,
                   const repro::Inputs& inputs, Outcome& outcome) {
  const auto outputs = summarize(outcome.results);
  std::ranges::sort(outcome.seconds);
  const double fastest = outcome.seconds.front();
  const double median = outcome.seconds[outcome.seconds.size() / 2];
  if (command.json) {
    json report = describe_file(file, inputs);
    report["status"] = "ok";
    report["backend"] = command.backend;
    report["threads"] = at::get_num_threads();
    report["runs"] = command.repeat;
    report["seconds"] = {{"min", fastest}, {"median", median}};
    report["outputs"] = as_json(outputs);
    std::printf("%s\n", report.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s: %s, %s, %s\n", bold(file.source->file).c_str(),
              counted(file.graph->size(), "node").c_str(),
              counted(file.inputs.size(), "input").c_str(), to_string(file.stage));
  for (const std::string& note : inputs.notes) std::printf("note: %s\n", note.c_str());
  std::printf("%s with backend %s in %s", bold("ran").c_str(), command.backend.c_str(),
              human_seconds(fastest).c_str());
  if (command.repeat > 1) {
    std::printf(" (fastest of %d; median %s)", command.repeat, human_seconds(median).c_str());
  }
  const auto threads = static_cast<std::size_t>(at::get_num_threads());
  std::printf(", %s\n\n%s", counted(threads, "thread").c_str(), as_table(outputs).c_str());
}

}  // namespace

int run(const RunCommand& command) {
  if (command.backend != "eager") {
    throw UserError("unknown backend '" + command.backend + "'", "the backends are: eager");
  }
  if (command.threads > 0) at::set_num_threads(command.threads);
  repro::ReproFile file = [&] {
    const observe::Phase phase("parse", observe::Component::parse);
    return repro::read_repro_file(command.file);
  }();
  observe::artifact(observe::Artifact::graph_code, [&] { return graph::print(*file.graph); });
  // Stock PyTorch runs graphs taken after autograd without gradients.
  const c10::AutoGradMode grad(file.stage != repro::Stage::after_aot);
  repro::Inputs inputs;
  try {
    Outcome outcome = run_repeatedly(command, file, inputs);
    if (command.output) save_results(*command.output, outcome.results);
    print_success(command, file, inputs, outcome);
    return 0;
  } catch (const aten::OperatorError& error) {
    print_failure(command, file, inputs, error);
    return 1;
  }
}

}  // namespace assay::cli
