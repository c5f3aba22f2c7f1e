#include "cli/run_report.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/profile_report.h"
#include "cli/tensor_summary.h"
#include "cli/terminal.h"

namespace assay::cli {

namespace {

using nlohmann::json;

json describe_file(const repro::ReproFile& file, const repro::Inputs& inputs) {
  return {{"file", file.source->file},
          {"taken", to_string(file.stage)},
          {"nodes", file.graph->size()},
          {"inputs",
           {{"count", file.inputs.size()},
            {"original", inputs.made_up_storages == 0},
            {"loaded_storages", inputs.loaded_storages},
            {"made_up_storages", inputs.made_up_storages},
            {"notes", inputs.notes}}}};
}

void print_json(const json& report) {
  std::printf("%s\n", report.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

std::vector<OutputSummary> summarize_gradients(const RunOutcome& outcome, const char* prefix) {
  std::vector<OutputSummary> rows;
  for (const auto& [name, gradient] : outcome.gradients) {
    OutputSummary row = summarize(aten::Value(c10::IValue(gradient))).at(0);
    row.name = prefix + name;
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_success_json(const RunCommand& command, const repro::ReproFile& file,
                        const repro::Inputs& inputs, const RunOutcome& outcome, double fastest,
                        double median) {
  json report = describe_file(file, inputs);
  report["status"] = "ok";
  report["backend"] = command.backend;
  report["threads"] = at::get_num_threads();
  report["runs"] = command.repeat;
  report["seconds"] = {{"min", fastest}, {"median", median}};
  report["outputs"] = as_json(summarize(outcome.results));
  if (command.backward) report["gradients"] = as_json(summarize_gradients(outcome, ""));
  if (command.profile) report["profile"] = profile_json(outcome.profile);
  print_json(report);
}

const char* doing(Stage stage) {
  if (stage == Stage::compile) return "compiling";
  return stage == Stage::backward ? "running backward" : "running";
}

}  // namespace

void print_success(const RunCommand& command, const repro::ReproFile& file,
                   const repro::Inputs& inputs, const RunOutcome& outcome) {
  std::vector<double> seconds = outcome.seconds;
  std::ranges::sort(seconds);
  const double fastest = seconds.front();
  const double median = seconds[seconds.size() / 2];
  if (command.json) {
    print_success_json(command, file, inputs, outcome, fastest, median);
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
  auto rows = summarize(outcome.results);
  std::ranges::move(summarize_gradients(outcome, "grad:"), std::back_inserter(rows));
  std::printf(", %s\n\n%s", counted(threads, "thread").c_str(), as_table(rows).c_str());
  if (command.profile) std::printf("\n%s", profile_table(outcome.profile).c_str());
}

void print_failure(const RunCommand& command, const repro::ReproFile& file,
                   const repro::Inputs& inputs, Stage stage, const aten::FailureDetail& failure) {
  if (!command.json) {
    const std::string where =
        stage == Stage::eager ? "" : command.backend + ", " + doing(stage) + ": ";
    // The backend is named already.
    const std::string& text = failure.type == "BackendError" ? failure.message : failure.text;
    std::fprintf(stderr, "%s %s%s\n", red("failed:").c_str(), where.c_str(), text.c_str());
    return;
  }
  json report = describe_file(file, inputs);
  report["status"] = "failed";
  json& entry = report["failure"] = {{"kind", "exception"},
                                     {"stage", to_string(stage)},
                                     {"backend", command.backend},
                                     {"type", failure.type},
                                     {"message", failure.message}};
  if (!failure.node.empty()) entry["node"] = failure.node;
  if (!failure.call.empty()) {
    entry["call"] = failure.call;
    json& stack = entry["stack"] = json::array();
    for (const graph::StackFrame& frame : failure.stack) {
      stack.push_back({{"file", frame.file},
                       {"line", frame.line},
                       {"function", frame.function},
                       {"text", frame.text}});
    }
  }
  print_json(report);
}

}  // namespace assay::cli
