// Which program of a text is the repro: a file may be a log, an issue or a page, and hold several.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "assay/error.h"
#include "graph/python_parser.h"
#include "repro/graph_listing.h"
#include "repro/graphs_in_text.h"
#include "repro/log_prefixes.h"
#include "repro/programs.h"
#include "repro/read_program.h"

namespace assay::repro {

using graph::python::Module;
using graph::python::Source;
using graph::python::Statement;

namespace {

constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{64} << 20U;

}  // namespace

namespace {

// What became of a text that is read as Python.
struct Attempt {
  std::optional<ReproFile> file;
  std::optional<UserError> failure;  // if there is no file
  bool is_python = true;             // all of it, with a graph
};

bool has_graph(const Module& module) {
  return std::ranges::any_of(module.statements, [](const Statement& statement) {
    return statement.kind == Statement::Kind::class_def ||
           (statement.kind == Statement::Kind::function && statement.name == "forward");
  });
}

// A repro as stock PyTorch writes them, and not the program it was made from.
bool is_repro(const Module& module) {
  return std::ranges::any_of(module.statements, [](const Statement& statement) {
    const bool is_class = statement.kind == Statement::Kind::class_def;
    const bool is_function = statement.kind == Statement::Kind::function;
    return (is_class && statement.name == "Repro") ||
           (is_function && statement.name == "load_args");
  });
}

// The repros, or everything if there are none. The last one first: it is what the ones before it
// were reduced or changed to.
std::vector<const Module*> by_preference(const std::vector<Module>& programs) {
  std::vector<const Module*> ordered;
  for (const Module& program : programs) ordered.push_back(&program);
  std::ranges::reverse(ordered);
  if (std::ranges::any_of(programs, is_repro)) {
    std::erase_if(ordered, [](const Module* program) { return !is_repro(*program); });
  }
  return ordered;
}

Attempt read_python(std::string text, const std::string& name) {
  Attempt attempt;
  auto source = std::make_unique<Source>(Source{name, std::move(text)});
  Recovered recovered;
  try {
    recovered = parse_what_can_be_read(*source);
  } catch (const UserError& error) {
    attempt.failure = error;
    attempt.is_python = false;
    return attempt;
  }
  attempt.is_python = !recovered.first_error && has_graph(recovered.module);
  std::vector<Module> programs = split_programs(recovered.module, *source);
  for (const Module* program : by_preference(programs)) {
    ReproFile file;
    file.source = std::move(source);
    try {
      read_program(file, *program);
      file.notes.insert(file.notes.begin(), recovered.notes.begin(), recovered.notes.end());
      if (programs.size() > 1) {
        file.notes.push_back("the file holds " + std::to_string(programs.size()) +
                             " programs; this is number " +
                             std::to_string(program - programs.data() + 1));
      }
      attempt.file = std::move(file);
      return attempt;
    } catch (const UserError& error) {
      if (!attempt.failure) attempt.failure = error;
      source = std::move(file.source);
    }
  }
  // If something was skipped, that is why the rest makes no sense.
  if (recovered.first_error) attempt.failure = recovered.first_error;
  return attempt;
}

}  // namespace

ReproFile parse_repro_file(std::string text, const std::string& name) {
  strip_log_prefixes(text);
  Attempt whole = read_python(text, name);
  if (whole.file) return std::move(*whole.file);
  if (whole.is_python) throw *whole.failure;
  for (std::string& part : graphs_in_text(text)) {
    Attempt attempt = read_python(std::move(part), name);
    if (attempt.file) {
      attempt.file->notes.insert(attempt.file->notes.begin(),
                                 "the file is not a Python program; Assay reads the graph in it");
      return std::move(*attempt.file);
    }
    // What is wrong with the graph says more than that the text around it is not Python.
    if (attempt.is_python) whole.failure = attempt.failure;
  }
  for (std::string& graph : graphs_in_listings(text)) {
    Attempt attempt = read_python(std::move(graph), name);
    if (attempt.file) {
      attempt.file->notes.insert(attempt.file->notes.begin(),
                                 "the file lists a graph; Assay reads it without its modules");
      return std::move(*attempt.file);
    }
    whole.failure = attempt.failure;
  }
  if (text.find("async_compile = AsyncCompile()") != std::string::npos) {
    throw UserError(name +
                        ": this is code that inductor generated; the graph that it was made "
                        "from is not in it",
                    "with TORCH_COMPILE_DEBUG=1, stock PyTorch writes the graph to "
                    "fx_graph_runnable.py in the same directory");
  }
  throw *whole.failure;
}

ReproFile read_repro_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UserError(path.string() + ": this is a directory", "expected a file such as repro.py");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw UserError(path.string() + ": " + std::strerror(errno));
  std::string text;
  std::vector<char> block(std::size_t{1} << 16U);
  // Read no more than the limit, also from a device or pipe that never ends.
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())),
         stream.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxFileBytes) break;
  }
  if (stream.bad()) throw UserError(path.string() + ": the file cannot be read");
  return parse_repro_file(std::move(text), path.string());
}

}  // namespace assay::repro
