#include "reduce/workspace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "assay/error.h"
#include "repro/inputs.h"
#include "repro/save.h"
#include "repro/write.h"
#include "sandbox/trial.h"

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
  numbers.reserve(sizes.size());
  for (const graph::SizeExpr& size : sizes) numbers.emplace_back(size.evaluate(symbols));
  return numbers;
}

std::vector<fs::path> files_of(const fs::path& directory) {
  std::vector<fs::path> files;
  if (!fs::is_directory(directory)) return files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

// The last is what they are known by: a removal that was interrupted can go on.
constexpr const char* kOurs[] = {"repro.py", "passing.py", "verdicts.jsonl", "checkpoints",
                                 "other",    "storages",   "reduction.json"};

bool is_below(const fs::path& path, const fs::path& directory) {
  const fs::path relative = fs::weakly_canonical(path).lexically_relative(directory);
  return !relative.empty() && *relative.begin() != "..";
}

// Its file or its inputs' contents may lie where the result is to be.
void refuse_to_remove_subject(const fs::path& directory, const repro::ReproFile& subject) {
  const auto storages = repro::storage_directory(subject);
  for (const char* name : kOurs) {
    const fs::path ours = fs::weakly_canonical(directory / name);
    const bool has_file = is_below(subject.source->file, ours);
    const bool has_contents = storages && is_below(*storages / "storages", ours);
    if (has_file || (has_contents && fs::exists(ours))) {
      throw UserError((directory / name).string() + " belongs to the file to reduce",
                      "choose another directory with --output");
    }
  }
}

}  // namespace

Workspace::Lock::Lock(const fs::path& directory) {
  fs::create_directories(directory);
  const fs::path path = directory / ".lock";
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw UserError(path.string() + ": " + std::strerror(errno));
  // Of the process alone: forked servers, which may outlive it by a moment, do not have it.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file_, F_SETLK, &whole) == 0) return;
  close(file_);
  throw UserError("another reduction is running in " + directory.string(),
                  "wait for it, or choose another directory with --output");
}

Workspace::Lock::~Lock() { close(file_); }

Workspace::Workspace(const fs::path& directory, const repro::ReproFile& subject,
                     const std::string& identity, bool restart)
    : directory_(fs::absolute(directory)),
      lock_(directory_),
      subject_(subject),
      store_(directory_) {
  is_resumed_ = !restart && read_if_there(directory_ / "reduction.json") == identity;
  if (is_resumed_) return;
  clear(subject);
  save("reduction.json", identity);
}

void Workspace::clear(const repro::ReproFile& subject) const {
  refuse_to_remove_subject(directory_, subject);
  const bool is_ours = fs::exists(directory_ / "reduction.json");
  for (const char* name : kOurs) {
    if (!is_ours && fs::exists(directory_ / name)) {
      throw UserError((directory_ / name).string() + " would be overwritten",
                      "choose an empty directory with --output");
    }
    fs::remove_all(directory_ / name);
  }
}

void Workspace::tidy() const {
  std::string texts;
  for (const char* name : {"", "checkpoints", "other"}) {
    for (const fs::path& file : files_of(directory_ / name)) {
      if (file.filename().string().starts_with(sandbox::kCandidatePrefix)) {
        fs::remove(file);
      } else if (file.extension() == ".py") {
        texts += read_if_there(file);
      }
    }
  }
  for (const fs::path& file : files_of(directory_ / "storages")) {
    // A storage's file has its hash as name, by which programs mention it.
    if (texts.find(file.filename().string()) == std::string::npos) fs::remove(file);
  }
}

Candidate Workspace::load(const repro::ReproFile& subject, std::uint64_t seed,
                          std::vector<std::string>* notes) {
  Candidate program;
  program.graph = subject.graph->clone();
  program.storages = subject.storages;
  program.inputs = subject.inputs;
  std::optional<repro::ContentStore> source;
  if (const auto directory = repro::storage_directory(subject)) source.emplace(*directory);
  const repro::Inputs loaded = repro::load_inputs(subject, {seed, std::nullopt});
  // A file that names no data asks for synthesized inputs.
  if (notes != nullptr && subject.save_directory) *notes = loaded.notes;
  for (repro::StorageSpec& spec : program.storages) {
    spec.bytes = spec.bytes.evaluate(subject.symbols);
  }
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    auto* tensor = std::get_if<repro::TensorInput>(&program.inputs[i]);
    if (tensor == nullptr) continue;
    tensor->meta.sizes = evaluated(tensor->meta.sizes, subject.symbols);
    tensor->meta.strides = evaluated(tensor->meta.strides, subject.symbols);
    tensor->storage_offset = tensor->storage_offset.evaluate(subject.symbols);
    std::string& hash = program.storages[tensor->storage].hash;
    if (!hash.empty() && source && source->contains(hash)) {
      store_.adopt(*source, hash);
    } else {
      hash = store_.write(loaded.values[i].leaf.toTensor().storage());
    }
  }
  return program;
}

repro::ReproFile Workspace::make_file(const Candidate& program,
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
  file.process_groups = subject_.process_groups;
  file.save_directory = save_directory;
  return file;
}

std::string Workspace::print(const Candidate& program) const {
  repro::ReproFile file = make_file(program, ".");
  file.stable_output = true;
  return repro::print_repro_file(file, {.metadata = false, .stacks = false, .releases = false});
}

std::string Workspace::print_for_people(const Candidate& program, const std::string& comment,
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
