// `assay run FILE`: runs a graph file with a backend and describes what came out.
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <chrono>
#include <fstream>

#include "assay/error.h"
#include "assay/stage.h"
#include "aten/failure.h"
#include "backends/compile.h"
#include "backends/fault.h"
#include "cli/commands.h"
#include "cli/gradients.h"
#include "cli/run_report.h"
#include "graph/print.h"
#include "observe/observe.h"
#include "repro/debug_directory.h"
#include "sandbox/report.h"

namespace assay::cli {

namespace {

using Clock = std::chrono::steady_clock;

// One run of the command: what it has so far is what a failure is reported with.
struct Session {
  const RunCommand& command;
  repro::ReproFile file;
  repro::Inputs inputs;
  Stage stage = Stage::compile;
};

// As the file does it: `run_repro(..., autocast=True)`.
class AutocastScope {
 public:
  explicit AutocastScope(bool enabled) : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)) {
    if (enabled) at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~AutocastScope() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool was_enabled_;
};

// Eager has nothing of its own that could fail, unless it is given a fault: it is the program.
Stage as_reported(const RunCommand& command, Stage stage) {
  const bool is_program = command.backend == "eager" && backends::current_faults().empty();
  return is_program && stage != Stage::compile ? Stage::eager : stage;
}

compare::Callable compile(Session& session) {
  const RunCommand& command = session.command;
  session.inputs = repro::load_inputs(session.file, {command.seed, command.save_directory});
  // Attributes with random contents are drawn first, as when stock PyTorch makes the module.
  repro::seed_generator(command.seed);
  // The session outlives the compiled graph.
  const std::shared_ptr<const graph::Graph> graph(session.file.graph.get(), [](const void*) {});
  auto compiled = backends::compile(
      *find_backend(command.backend),
      backends::request_for_values(graph, session.inputs.values, session.file.source.get()),
      {.debug_directory = repro::debug_directory_decorator()});
  return backends::as_value_function(std::move(compiled), *graph);
}

// Inputs are made anew for each run: a graph may change them.
RunOutcome run_repeatedly(Session& session) {
  const RunCommand& command = session.command;
  const compare::Callable compiled = compile(session);
  RunOutcome outcome;
  kernels::Profile profile;
  std::optional<kernels::ProfileScope> profiling;
  if (command.profile) profiling.emplace(profile);
  for (int i = 0; i < command.repeat; ++i) {
    session.stage = as_reported(command, Stage::run);
    session.inputs = repro::load_inputs(session.file, {command.seed, command.save_directory});
    repro::seed_generator(command.seed);
    if (command.backward) keep_gradients(session.inputs.values);
    {
      const observe::Phase phase("run", observe::Component::aten);
      const auto begin = Clock::now();
      outcome.results = compiled(session.inputs.values);
      outcome.seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    if (command.backward) {
      session.stage = as_reported(command, Stage::backward);
      outcome.gradients = run_backward(outcome.results, session.inputs.values, *session.file.graph);
    }
  }
  outcome.profile = profile.steps();
  return outcome;
}

void save_results(const std::filesystem::path& path, const aten::Value& results) {
  const std::vector<char> data = torch::jit::pickle_save(aten::to_ivalue(results));
  std::ofstream stream(path, std::ios::binary);
  stream.write(data.data(), static_cast<std::streamsize>(data.size()));
  if (!stream.flush()) throw UserError(path.string() + ": the results cannot be written");
}

int run_and_report(Session& session) {
  try {
    const RunOutcome outcome = run_repeatedly(session);
    if (session.command.output) save_results(*session.command.output, outcome.results);
    print_success(session.command, session.file, session.inputs, outcome);
    return 0;
  } catch (...) {
    const aten::FailureDetail failure = aten::describe_exception();
    if (failure.blame != aten::FailureDetail::Blame::program) throw;
    print_failure(session.command, session.file, session.inputs, session.stage, failure);
    return 1;
  }
}

}  // namespace

int run(const RunCommand& command) {
  find_backend(command.backend);
  if (command.profile && command.backend != "native" && command.backend != "inductor") {
    throw UserError(
        "--profile times the kernels of the backend 'native', not '" + command.backend + "'",
        "add --backend native");
  }
  if (command.inject) backends::set_faults(backends::parse_faults(*command.inject));
  if (command.threads > 0) at::set_num_threads(command.threads);
  Session session{command,
                  [&] {
                    const observe::Phase phase("parse", observe::Component::parse);
                    return repro::read_repro_file(command.file);
                  }(),
                  {}};
  observe::artifact(observe::Artifact::graph_code,
                    [&] { return graph::print(*session.file.graph); });
  // Stock PyTorch runs graphs taken after autograd without gradients.
  const bool has_gradients = session.file.stage != repro::Stage::after_aot;
  if (command.backward && !has_gradients) {
    throw UserError("--backward: this graph was captured after autograd and runs without gradients",
                    "use a file captured before autograd, e.g. dynamo's minifier_launcher.py");
  }
  const c10::AutoGradMode grad(has_gradients);
  const AutocastScope autocast(command.autocast || session.file.autocast);
  sandbox::print_node_on_signals(*session.file.graph);
  return run_and_report(session);
}

}  // namespace assay::cli
