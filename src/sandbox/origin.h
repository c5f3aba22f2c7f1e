/// \file Which call of the user's graph a node of a later stage was made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace assay::sandbox {

/// The call of `graph` that a node of that name and provenance was made of, or nullptr. Later
/// stages name nodes after those of the graph with something appended. Allocates nothing: signal
/// handlers call it.
const graph::Node* find_origin(const graph::Graph& graph, std::string_view name,
                               const std::vector<std::string>& provenance);

}  // namespace assay::sandbox
