/// \file A graph's inputs as they are at one moment, for a file that may be written later, when a
/// run has changed or freed them.
#pragma once

#include <c10/core/Storage.h>

#include <vector>

#include "aten/value.h"
#include "graph/graph.h"
#include "repro/repro_file.h"

namespace assay::repro {

struct Snapshot {
  std::vector<Input> inputs;          ///< One per placeholder.
  std::vector<StorageSpec> storages;  ///< Without hashes.
  /// Beside `storages`; a null storage where there are no contents.
  std::vector<c10::Storage> contents;
  /// By input: its value where a file cannot hold it (0.5, True, 'mean'), to be written into the
  /// graph instead; null otherwise.
  std::vector<std::optional<graph::Argument>> constants;
};

/// With `copies` the contents are the snapshot's own; otherwise they are shared with the inputs.
Snapshot take_snapshot(const graph::Graph& graph, const std::vector<aten::Value>& inputs,
                       bool copies);

/// What the placeholders' metadata says, for a graph that failed before it had inputs.
Snapshot snapshot_of_metadata(const graph::Graph& graph);

/// True unless it is known that running the graph leaves its inputs as they are.
bool may_change_inputs(const graph::Graph& graph);

}  // namespace assay::repro
