#include "repro/debug_directory.h"

#include <atomic>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "assay/backend.h"
#include "aten/value.h"
#include "config/config.h"
#include "graph/print.h"
#include "observe/observe.h"
#include "repro/config.h"
#include "repro/debug_log.h"
#include "repro/save.h"
#include "repro/snapshot.h"
#include "repro/warn.h"

namespace assay::repro {

namespace {

namespace fs = std::filesystem;
using observe::Artifact;
using observe::Component;

fs::path this_run() { return run_directory(config::get<"debug_dir_root">()); }

// The numbers in the names of directories, which are PyTorch's: it counts joint graphs too.
struct Model {
  int number = 0;
  std::optional<int> first_graph = {};  // once it is known what becomes of it

  std::string directory_name(Role role) const {
    static std::atomic<int> directories = 0;
    const int graph = first_graph.value() + (role == Role::forward    ? 1
                                             : role == Role::backward ? 3
                                                                      : 0);
    return "model__" + std::to_string(number) + "_" + to_string(role) + "_" +
           std::to_string(graph) + "." + std::to_string(directories++);
  }
};

std::atomic<int> models = 0;
std::atomic<int> graphs = 0;

void write(bool is_wanted, const fs::path& file, const std::string& text) {
  if (!is_wanted || text.empty()) return;
  write_file(file, text.ends_with('\n') ? text : text + "\n");
}

// What a compiler prints about one graph, by artifact.
class Artifacts {
 public:
  Artifacts()
      : subscription_(observe::subscribe([this, thread = this_thread()](const auto& event) {
          if (event.thread != thread || event.kind != observe::Kind::artifact) return;
          texts_[event.channel.index()] = event.message;
        })) {}

  std::string operator[](Artifact artifact) const {
    const auto found = texts_.find(observe::Channel(artifact).index());
    return found == texts_.end() ? "" : found->second;
  }

 private:
  std::map<std::size_t, std::string> texts_;
  observe::Subscription subscription_;
};

void write_graph(const fs::path& directory, const CompileRequest& request) {
  if (!config::get<"trace.fx_graph">()) return;
  write(true, directory / "fx_graph_readable.py", graph::print(*request.graph));
  SaveOptions options;
  options.stage = request.role == Role::captured ? Stage::after_dynamo : Stage::after_aot;
  options.backend = request.context->backend;
  options.role = to_string(request.role);
  if (config::get<"trace.inputs">()) options.save_dir = directory;
  const bool has_inputs = !request.inputs.empty();
  const Snapshot inputs =
      has_inputs
          ? take_snapshot(*request.graph, aten::unpack_values(request.inputs), /*copies=*/false)
          : snapshot_of_metadata(*request.graph);
  save_graph_repro(directory / "fx_graph_runnable.py", *request.graph, inputs, options);
}

void write_made(const fs::path& directory, const Artifacts& made) {
  write(config::get<"trace.fx_graph_transformed">(), directory / "fx_graph_transformed.py",
        made[Artifact::post_grad_graphs]);
  write(config::get<"trace.ir_pre_fusion">(), directory / "ir_pre_fusion.txt",
        made[Artifact::ir_pre_fusion]);
  write(config::get<"trace.ir_post_fusion">(), directory / "ir_post_fusion.txt",
        made[Artifact::ir_post_fusion]);
  write(config::get<"trace.output_code">(), directory / "output_code.cpp",
        made[Artifact::output_code]);
}

// Nothing that cannot be written stops a compilation.
template <typename Work>
void try_to_write(const fs::path& directory, const Work& work) {
  try {
    fs::create_directories(directory);
    work();
  } catch (const std::exception& error) {
    warn("cannot write the debug directory " + directory.string() + ": " + error.what());
  }
}

std::shared_ptr<const CompiledGraph> compile_graph_recorded(const Compiler& compiler,
                                                            const CompileRequest& request,
                                                            const Model& model) {
  const std::string name = model.directory_name(request.role);
  const fs::path directory = this_run() / "torchinductor" / name;
  std::optional<DebugLog> log;
  if (config::get<"trace.debug_log">()) {
    log.emplace(directory / "debug.log", [thread = this_thread()](const observe::Event& event) {
      return event.thread == thread &&
             (belongs_to(event, Component::inductor) ||
              belongs_to(event, Component::pass_manager) || belongs_to(event, Component::backends));
    });
  }
  // Before compiling: a compiler that crashes leaves at least its input.
  try_to_write(directory, [&] { write_graph(directory, request); });
  observe::log(Component::backends, observe::Level::debug, [&] {
    return "compiling " + name + " with " + request.context->backend + ", " +
           std::to_string(request.graph->size()) + " nodes";
  });
  const Artifacts made;
  const auto finish = [&] { try_to_write(directory, [&] { write_made(directory, made); }); };
  std::shared_ptr<const CompiledGraph> compiled;
  try {
    compiled = compiler(request);
  } catch (...) {
    finish();
    throw;
  }
  finish();
  observe::log(Component::inductor, observe::Level::warning,
               [&] { return name + " debug trace: " + directory.string(); });
  return compiled;
}

// The graph as captured, for a backend that makes halves of it: what autograd does is logged.
std::shared_ptr<const CompiledGraph> compile_captured(const Compiler& compiler,
                                                      const CompileRequest& request,
                                                      const Model& model) {
  std::optional<DebugLog> log;
  if (config::get<"trace.debug_log">()) {
    log.emplace(this_run() / "torchinductor" /
                    ("aot_model___" + std::to_string(model.number) + "_debug.log"),
                [thread = this_thread()](const observe::Event& event) {
                  return event.thread == thread && belongs_to(event, Component::aot);
                });
  }
  return compiler(request);
}

bool compiles_halves(const CompileRequest& request) {
  for (const auto& backend : all_backends()) {
    if (backend->name == request.context->backend) return backend->compiles_halves;
  }
  return false;
}

}  // namespace

void start_capture_log() {
  if (!config::get<"trace.enabled">() || !config::get<"trace.debug_log">()) return;
  // Never ends: events may come until the end of the process.
  static const auto* const log =
      new DebugLog(this_run() / "torchdynamo" / "debug.log", [](const observe::Event& event) {
        return config::get<"trace.enabled">() && belongs_to(event, Component::dynamo);
      });
  (void)log;
}

CompilerDecorator debug_directory_decorator() {
  if (!config::get<"trace.enabled">()) return {};
  start_capture_log();
  auto model = std::make_shared<Model>();
  model->number = models++;
  return [model](Compiler compiler) -> Compiler {
    return [compiler = std::move(compiler), model](const CompileRequest& request) {
      if (request.role == Role::captured && compiles_halves(request)) {
        return compile_captured(compiler, request, *model);
      }
      if (!model->first_graph) {
        model->first_graph = graphs.fetch_add(request.role == Role::forward ? 4 : 1);
      }
      return compile_graph_recorded(compiler, request, *model);
    };
  };
}

}  // namespace assay::repro
