/// \file Which call of the user's graph a node of a later stage was made of.
#pragma once

#include <string_view>

#include "graph/graph.h"

namespace assay::sandbox {

/// The call of `graph` that a node of that name and provenance was made of: the chain of stages is
/// followed back to the one that `graph` is. A node without provenance is looked up by its name.
/// nullptr if there is none. Allocates nothing: signal handlers call it.
const graph::Node* find_origin(const graph::Graph& graph, std::string_view name,
                               const graph::Provenance& provenance);

}  // namespace assay::sandbox
