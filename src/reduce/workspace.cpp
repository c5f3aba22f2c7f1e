#include "reduce/workspace.h"

#include <fstream>
#include <sstream>

#include "repro/inputs.h"
#include "repro/save.h"
#include "repro/write.h"

namespace assay::reduce {

namespace {

namespace fs = std::filesystem;

std::string read_if_there(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<graph::SizeExpr> evaluated(const std::vector<graph::SizeExpr>& sizes,
                                       const graph::SymbolValues& symbols) {
  std::vector<graph::SizeExpr> numbers;
  for (const graph::SizeExpr& size : sizes) numbers.emplace_back(size.evaluate(symbols));
  return numbers;
}

}  // namespace

Workspace::Workspace(fs::path directory, const repro::ReproFile& subject,
                     const std::string& identity, bool restart)
    : directory_(fs::absolute(std::move(directory))), subject_(subject), store_(directory_) {
  fs::create_directories(directory_);
  is_resumed_ = !restart && read_if_there(directory_ / "reduction.json") == identity;
  if (is_resumed_) return;
  for (const char* name : {"repro.py", "passing.py", "verdicts.jsonl", "reduction.json"}) {
    fs::remove(directory_ / name);
  }
  for (const char* name : {"checkpoints", "other", "storages"}) fs::remove_all(directory_ / name);
  save("reduction.json", identity);
}

Program Workspace::load(const repro::ReproFile& subject, std::uint64_t seed) {
  Program program;
  program.graph = subject.graph->clone();
  program.storages = subject.storages;
  program.inputs = subject.inputs;
  const repro::Inputs loaded = repro::load_inputs(subject, {seed, std::nullopt});
  for (repro::StorageSpec& spec : program.storages) {
    spec.bytes = spec.bytes.evaluate(subject.symbols);
  }
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    auto* tensor = std::get_if<repro::TensorInput>(&program.inputs[i]);
    if (tensor == nullptr) continue;
    tensor->meta.sizes = evaluated(tensor->meta.sizes, subject.symbols);
    tensor->meta.strides = evaluated(tensor->meta.strides, subject.symbols);
    tensor->storage_offset = tensor->storage_offset.evaluate(subject.symbols);
    program.storages[tensor->storage].hash =
        store_.write(loaded.values[i].leaf.toTensor().storage());
  }
  return program;
}

repro::ReproFile Workspace::make_file(const Program& program,
                                      const std::string& save_directory) const {
  repro::ReproFile file;
  file.graph = program.graph->clone();
  file.storages = program.storages;
  file.inputs = program.inputs;
  file.symbols = subject_.symbols;
  file.stage = subject_.stage;
  file.accuracy = subject_.accuracy;
  file.tracing_mode = subject_.tracing_mode;
  file.check_string = subject_.check_string;
  file.backend = subject_.backend;
  file.autocast = subject_.autocast;
  file.config = subject_.config;
  file.environment = subject_.environment;
  file.save_directory = save_directory;
  return file;
}

std::string Workspace::print(const Program& program) const {
  repro::ReproFile file = make_file(program, ".");
  file.stable_output = true;
  return repro::print_repro_file(file, {.metadata = false, .stacks = false, .releases = false});
}

std::string Workspace::print_for_people(const Program& program, const std::string& comment,
                                        int depth) const {
  repro::ReproFile file = make_file(program, depth == 0 ? "." : "..");
  for (graph::Node& node : file.graph->nodes()) {
    node.meta.value = {};
    if (program.values == nullptr) continue;
    const auto found = program.values->find(node.name());
    if (found != program.values->end() && found->second.kind == RecordedValue::Kind::tensor) {
      node.meta.value.value = found->second.tensor.meta;
    }
  }
  file.header = comment + subject_.header;
  const bool has_contents =
      std::ranges::any_of(program.storages, [](const auto& spec) { return !spec.hash.empty(); });
  if (!has_contents) file.save_directory.reset();
  return repro::print_repro_file(file, {.releases = false});
}

void Workspace::save(const fs::path& name, const std::string& text) const {
  fs::create_directories((directory_ / name).parent_path());
  repro::write_file(directory_ / name, text);
}

}  // namespace assay::reduce
