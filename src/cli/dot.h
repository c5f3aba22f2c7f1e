/// \file A graph as a Graphviz picture, for `assay show --dot`.
#pragma once

#include <string>

#include "graph/graph.h"

namespace assay::cli {

/// Text for `dot -Tsvg`: inputs as ellipses, calls as boxes with their types, outputs in bold.
std::string to_dot(const graph::Graph& graph);

}  // namespace assay::cli
