// `assay rerun DIR`: a graph of the debug directory again, with the kernels of its output_code.cpp
// as it is now. Whoever edits that file sees whether the result is still right, and how fast it is.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "aten/runner.h"
#include "backends/compile.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "compare/models.h"
#include "kernels/compile.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"

namespace assay::cli {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) {
    throw UserError(path.string() + " cannot be read",
                    "DIR is a graph's directory below torch_compile_debug, such as "
                    "run_.../torchinductor/model__0_forward_1.0 (TORCH_COMPILE_DEBUG=1)");
  }
  return text;
}

double fastest(const RerunCommand& command, const repro::ReproFile& file,
               const compare::Callable& program) {
  double best = 0;
  for (int i = 0; i < command.repeat; ++i) {
    std::vector<aten::Value> inputs = repro::load_inputs(file, {command.seed, {}}).values;
    repro::seed_generator(command.seed);
    const auto begin = Clock::now();
    const aten::Value results = program(std::move(inputs));
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i == 0 || seconds < best) best = seconds;
  }
  return best;
}

}  // namespace

int rerun(const RerunCommand& command) {
  const std::string code = read_text(command.directory / "output_code.cpp");
  const fs::path graph_file = command.directory / "fx_graph_runnable.py";
  (void)read_text(graph_file);  // a message that says what DIR is
  const repro::ReproFile file = repro::read_repro_file(graph_file);
  const repro::Inputs inputs = repro::load_inputs(file, {command.seed, {}});
  if (command.threads > 0) at::set_num_threads(command.threads);
  const c10::AutoGradMode no_grad(false);
  const std::shared_ptr<const graph::Graph> graph(file.graph.get(), [](const void*) {});
  CompileRequest request = backends::request_for_values(graph, inputs.values, file.source.get());
  request.role = Role::inference;
  const compare::Callable eager = backends::as_value_function(aten::run_with_aten(request), *graph);
  const compare::Callable edited =
      backends::as_value_function(kernels::compile(request, {.code = code}), *graph);
  compare::TwoModelsOptions options;
  options.only_forward = true;
  options.seed = command.seed;
  const compare::TwoModels found = compare::same_two_models(*graph, edited, inputs.values, options);
  const bool is_same = found.same();
  const double seconds = fastest(command, file, edited);
  const double eager_seconds = fastest(command, file, eager);
  if (command.json) {
    nlohmann::json report = {{"directory", command.directory.string()},
                             {"status", is_same ? "ok" : "failed"},
                             {"same", is_same},
                             {"seconds", seconds},
                             {"eager_seconds", eager_seconds},
                             {"inputs", {{"original", inputs.made_up_storages == 0}}}};
    if (!is_same) report["message"] = found.comparison.where + ": " + found.comparison.message;
    std::printf("%s\n", report.dump(2).c_str());
    return is_same ? 0 : 1;
  }
  for (const std::string& note : inputs.notes) std::printf("note: %s\n", note.c_str());
  if (is_same) {
    std::printf("%s eager\n", bold("matches").c_str());
  } else {
    std::fprintf(stderr, "%s differs from eager at %s: %s\n", red("failed:").c_str(),
                 found.comparison.where.c_str(), found.comparison.message.c_str());
  }
  std::printf("ran in %s, eager in %s (fastest of %d)\n", human_seconds(seconds).c_str(),
              human_seconds(eager_seconds).c_str(), command.repeat);
  return is_same ? 0 : 1;
}

}  // namespace assay::cli
