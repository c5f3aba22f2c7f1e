/// \file Writes a graph and its inputs as a file that stock PyTorch and `assay run` run, as
/// PyTorch's function of the same name does.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aten/value.h"
#include "graph/graph.h"
#include "repro/repro_file.h"
#include "repro/snapshot.h"

namespace assay::repro {

struct SaveOptions {
  Stage stage = Stage::after_aot;
  std::string backend = {};  ///< The compiler that was given the graph.
  /// Leave out versions, hardware, seed and settings, so that equal graphs make equal files.
  bool stable_output = false;
  /// The directory for the inputs' data, in `storages/`; nothing: only their shapes are written.
  /// The file names it relative to itself where it lies below the file's directory.
  std::optional<std::filesystem::path> save_dir = {};
  std::string command = "run";     ///< What the file does by itself: run or minify.
  std::string accuracy = "False";  ///< As Python text: False, True, 'strict'.
  std::string tracing_mode = {};   ///< Empty: symbolic if a size is a symbol, else real.
  std::string check_str = {};      ///< What a failure's message must contain; empty: anything.
  /// Stock has a quicker hash that differs between versions; ours is always the stable one.
  bool stable_hash = true;
  /// Which part of a program it is, and how it failed; comments for whoever reads the file.
  std::string role = {};
  std::string failure = {};
};

/// Throws `UserError` or `std::filesystem::filesystem_error` if something cannot be written.
void save_graph_repro(const std::filesystem::path& file, const graph::Graph& graph,
                      const Snapshot& inputs, const SaveOptions& options);
void save_graph_repro(const std::filesystem::path& file, const graph::Graph& graph,
                      const std::vector<aten::Value>& inputs, const SaveOptions& options);

/// The same as an object, for a file in `directory`; only storages are written.
ReproFile make_graph_repro(const std::filesystem::path& directory, const graph::Graph& graph,
                           const Snapshot& inputs, const SaveOptions& options);

/// How a file in `directory` names the directory of its storages: relative if it lies below.
std::string directory_for_file(const std::filesystem::path& directory,
                               const std::filesystem::path& storages);

/// Writes a text under another name first, so that nobody ever reads half of it.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace assay::repro
