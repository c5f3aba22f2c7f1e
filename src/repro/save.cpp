#include "repro/save.h"

#include <ATen/autocast_mode.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "assay/error.h"
#include "graph/rewrite.h"
#include "repro/content_store.h"
#include "repro/header.h"
#include "repro/write.h"

namespace assay::repro {

namespace {

// Values that load_args cannot give are written where they are used.
void write_constants_into(graph::Graph& graph, const Snapshot& inputs) {
  const auto placeholders = graph.placeholders();
  for (std::size_t i = 0; i < inputs.constants.size(); ++i) {
    if (!inputs.constants[i] || placeholders[i]->users().empty()) continue;
    graph::replace_uses(*placeholders[i], *inputs.constants[i]);
  }
}

bool has_symbols(const Snapshot& inputs) {
  return std::ranges::any_of(inputs.inputs, [](const Input& input) {
    const auto* integer = std::get_if<IntegerInput>(&input);
    return integer != nullptr && !integer->expression.empty();
  });
}

std::string header(const graph::Graph& graph, const Snapshot& inputs, const SaveOptions& options) {
  std::string text;
  if (!options.stable_output) text += describe_environment();
  if (!options.role.empty()) text += "# graph: " + options.role + "\n";
  if (!options.failure.empty() && !options.stable_output) {
    text += "# failure: " + options.failure.substr(0, options.failure.find('\n')) + "\n";
  }
  if (!options.save_dir) text += describe_values(graph, inputs);
  return text;
}

}  // namespace

std::string directory_for_file(const std::filesystem::path& directory,
                               const std::filesystem::path& storages) {
  const auto whole = std::filesystem::absolute(storages).lexically_normal();
  const auto relative =
      whole.lexically_relative(std::filesystem::absolute(directory).lexically_normal());
  const bool is_below = !relative.empty() && *relative.begin() != "..";
  std::filesystem::path named = is_below ? relative : whole;
  if (!named.has_filename()) named = named.parent_path();  // a/b/ is a/b
  return named.generic_string();
}

ReproFile make_graph_repro(const std::filesystem::path& directory, const graph::Graph& graph,
                           const Snapshot& inputs, const SaveOptions& options) {
  ReproFile file;
  file.graph = graph.clone();
  file.graph->set_name("Repro");
  write_constants_into(*file.graph, inputs);
  file.storages = inputs.storages;
  file.inputs = inputs.inputs;
  file.stage = options.stage;
  file.command = options.command;
  file.accuracy = options.accuracy;
  file.tracing_mode = options.tracing_mode;
  if (file.tracing_mode.empty()) file.tracing_mode = has_symbols(inputs) ? "symbolic" : "real";
  file.check_string = options.check_str;
  file.backend = options.backend;
  file.autocast = at::autocast::is_autocast_enabled(at::kCPU);
  file.stable_output = options.stable_output;
  file.header = header(graph, inputs, options);
  if (options.save_dir) {
    ContentStore store(*options.save_dir);
    for (std::size_t i = 0; i < inputs.contents.size(); ++i) {
      if (inputs.contents[i]) file.storages[i].hash = store.write(inputs.contents[i]);
    }
    file.save_directory = directory_for_file(directory, *options.save_dir);
  }
  return file;
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::path temporary = file;
  temporary += ".part" + std::to_string(::getpid());
  std::ofstream stream(temporary, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) {
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw UserError(file.string() + " cannot be written: " + reason);
  }
  std::filesystem::rename(temporary, file);
}

void save_graph_repro(const std::filesystem::path& file, const graph::Graph& graph,
                      const Snapshot& inputs, const SaveOptions& options) {
  const auto directory = std::filesystem::absolute(file).parent_path();
  write_file(file, print_repro_file(make_graph_repro(directory, graph, inputs, options)));
}

void save_graph_repro(const std::filesystem::path& file, const graph::Graph& graph,
                      const std::vector<aten::Value>& inputs, const SaveOptions& options) {
  save_graph_repro(file, graph, take_snapshot(graph, inputs, /*copies=*/false), options);
}

}  // namespace assay::repro
