/// \file Puts a failure of a compiler on disk, as the repro level says (repro/config.h), and starts
/// the reducer. Used by repro/debug.h.
///
/// Nothing here throws: what cannot be written is a warning, and the user's own failure goes on.
#pragma once

#include <filesystem>
#include <string>

#include "assay/compiler.h"
#include "graph/graph.h"
#include "repro/config.h"
#include "repro/repro_file.h"
#include "repro/snapshot.h"

namespace assay::repro {

/// A graph that a compiler was given, and what is known of how it failed.
struct Failure {
  const graph::Graph& graph;
  const Snapshot& inputs;
  Stage stage = Stage::after_dynamo;
  std::string backend = {};
  BackendSender send_backend = {};
  std::string role = {};     ///< forward, backward or inference; empty after dynamo.
  std::string message = {};  ///< Empty before a run.
  bool accuracy = false;     ///< The results were wrong.
};

/// Writes `minifier_launcher.py` for a run that may crash. Storages that an earlier call wrote and
/// this one does not need are removed, so that a training loop does not fill the disk.
void dump_before_run(const DebugConfig& config, const Failure& coming) noexcept;

/// Level 1: `checkpoints/<nodes>.py`, and `repro.py` in the current directory. Level 2 and 3:
/// `minifier_launcher.py`. Level 4: all of them. Then reduces, if so configured.
void dump_failure(const DebugConfig& config, const Failure& failure) noexcept;

/// Writes the repro file `from` as `directory/repro.py`, naming the same storages.
void copy_repro(const std::filesystem::path& from, const std::filesystem::path& directory);

}  // namespace assay::repro
