/// \file The comment at the head of a repro file: what it was made with and what it depends on.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "repro/snapshot.h"

namespace assay::repro {

/// `# torch version: ...`, the processor, the seed, and every setting that is not the default; one
/// line each.
std::string describe_environment();

/// `# input x: f32[8, 16], -2.5 to 3.1, mean 0.02`: a line for each tensor, for a file that does
/// not hold their data.
std::string describe_values(const graph::Graph& graph, const Snapshot& snapshot);

/// True for a comment (without its #) that is part of such a header.
bool is_header_comment(std::string_view comment);

}  // namespace assay::repro
