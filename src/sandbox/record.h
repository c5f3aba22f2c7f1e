/// \file The values of a graph's nodes, saved so that any of them can become an input.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "aten/value.h"
#include "graph/graph.h"
#include "graph/python_lexer.h"

namespace assay::sandbox {

/// Runs the graph eagerly and describes each node's value as docs/toolbox.md says, with the
/// contents of the calls' results in the store. They are named by `key`, which must be this graph's
/// and these inputs' own, and by the node. If a call raises, the values before it are reported, and
/// what it raised comes through.
void record_values(const graph::Graph& graph, std::vector<aten::Value> inputs,
                   const std::filesystem::path& save_directory, const std::string& key,
                   const graph::python::Source* source,
                   const std::function<void(nlohmann::json values)>& report);

}  // namespace assay::sandbox
