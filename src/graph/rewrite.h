/// \file Changes of a node's arguments that passes of all rooms make.
#pragma once

#include <functional>

#include "graph/graph.h"

namespace assay::graph {

/// Replaces each argument of the node, positional or by keyword, by what `map` makes of it.
void map_arguments(Node& node, const std::function<Argument(const Argument&)>& map);

/// Whoever reads the node reads `replacement`, a constant or another node, instead.
void replace_uses(Node& node, const Argument& replacement);

}  // namespace assay::graph
