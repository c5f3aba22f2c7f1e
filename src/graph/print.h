/// \file Prints a graph as an FX-style Python program: a `torch.nn.Module` class that stock PyTorch
/// runs and that graph/parse.h reads back to an equal graph.
#pragma once

#include <string>

#include "graph/graph.h"

namespace assay::graph {

struct PrintOptions {
  bool metadata = true;  ///< Annotate values: `relu: "f32[8][1]cpu" = ...`.
  bool stacks = true;    ///< Comments with the user's file and line, and provenance.
  bool releases = true;  ///< `;  x = None` after a value's last use, as FX writes.
};

/// The class of `graph`, preceded by the classes of its subgraphs. Ends with a newline.
std::string print(const Graph& graph, const PrintOptions& options = {});

/// One argument as Python text.
std::string print(const Argument& argument);

/// The right-hand side of a call, without the name it is assigned to; for messages and logs.
std::string print_call(const Node& node);

}  // namespace assay::graph
