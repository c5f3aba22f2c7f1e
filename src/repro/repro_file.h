/// \file A repro file: a graph, the inputs it is run with, and how it is to be run.
///
/// Reads what stock PyTorch writes (`repro.py`, `minifier_launcher.py`, `fx_graph_runnable.py`,
/// `fx_graph_readable.py`, and their older forms), what people make of such files by hand, and what
/// repro/write.h writes. The file is data: nothing in it is executed.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "assay/error.h"
#include "aten/process_groups.h"
#include "graph/graph.h"
#include "graph/python_lexer.h"
#include "graph/size_expr.h"

namespace assay::repro {

/// `buf0 = reader.storage('d8a5...', 1600)`
struct StorageSpec {
  std::string hash;  ///< Empty if the contents were not saved.
  graph::SizeExpr bytes;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  c10::ScalarType dtype_hint = c10::ScalarType::Float;
};

/// `reader.tensor(buf0, (20, 20), requires_grad=True, is_leaf=True)`
struct TensorInput {
  std::size_t storage = 0;  ///< Index into `ReproFile::storages`.
  graph::TensorMeta meta;
  graph::SizeExpr storage_offset;
  bool is_leaf = true;
  bool is_conjugate = false;  ///< The storage holds the conjugate of the values.
  bool is_negative = false;   ///< The storage holds the negative of the values.
};

/// `reader.symint(4, expr='s77')`
struct IntegerInput {
  std::int64_t value = 0;
  std::string expression;
};

/// `reader.const('x')`: left out because the compiler did not need it; None at run time.
struct ConstantInput {
  std::string name;
};

/// `reader.unsupported('x')`, `reader.opaque(...)`: not in the file.
struct UnsupportedInput {
  std::string name;
};

/// `reader.generator('cuda', 0)`: a new random number generator.
struct GeneratorInput {};

using Input =
    std::variant<TensorInput, IntegerInput, ConstantInput, UnsupportedInput, GeneratorInput>;

/// Synthesized repeats would not add up to the size that the graph was made for: the tensor
/// `repeats` gets elements whose sum is the integer `output_size`, both indices of inputs.
struct RepeatsFixup {
  std::size_t repeats = 0;
  std::size_t output_size = 0;
};

/// Where in the stack the graph was taken.
enum class Stage { after_aot, after_dynamo, unknown };

const char* to_string(Stage stage);

/// `torch._inductor.config.cpp.threads = 1`, `os.environ['X'] = 'y'`; the value as Python text.
struct Setting {
  std::string name;
  std::string value;
};

struct ReproFile {
  /// The text; the graph's messages point into it.
  std::unique_ptr<graph::python::Source> source;
  std::unique_ptr<graph::Graph> graph;
  std::vector<StorageSpec> storages;
  std::vector<Input> inputs;
  graph::SymbolValues symbols;

  Stage stage = Stage::unknown;
  std::string command = "run";
  std::string accuracy = "False";  ///< As written: False, True, '' or 'strict'.
  std::string tracing_mode = "real";
  std::string check_string;
  std::string backend;  ///< The compiler the file names.
  bool autocast = false;
  /// Where `storages/` is; if relative, to the file.
  std::optional<std::string> save_directory;
  std::vector<Setting> config;
  std::vector<Setting> environment;
  std::string header;          ///< `# torch version: ...` comments (repro/header.h).
  bool stable_output = false;  ///< Leave out Assay's version.
  /// Contents of storages that the file itself holds (repro/bundle.h), by their hash.
  std::map<std::string, std::string, std::less<>> inlined_storages = {};
  std::vector<RepeatsFixup> repeats_fixups = {};
  /// The groups of the file's collectives, if it sets up ones of a single process.
  aten::ProcessGroups process_groups = {};
  /// Set if the file says nothing of an input: it can be shown, and `load_inputs` throws this.
  std::optional<UserError> undescribed_input = {};
  /// What a user should know about how the file was read, one sentence each.
  std::vector<std::string> notes = {};
};

/// Reads and parses a file. Throws `UserError` if it cannot be read or is not a repro file.
ReproFile read_repro_file(const std::filesystem::path& path);

/// Parses a text; `name` is for messages and for paths relative to the file.
ReproFile parse_repro_file(std::string text, const std::string& name);

}  // namespace assay::repro
