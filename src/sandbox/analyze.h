/// \file Which call of a graph does a backend compute wrongly?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "aten/value.h"
#include "compare/first_divergence.h"
#include "graph/graph.h"

namespace assay::sandbox {

/// Compiles every call of the graph alone with the backend and compares it with eager, on the
/// values it has in an eager run.
std::optional<compare::Divergence> first_wrong_call(const graph::Graph& graph,
                                                    const std::vector<aten::Value>& inputs,
                                                    const std::string& backend);

}  // namespace assay::sandbox
