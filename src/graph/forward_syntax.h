/// \file Builds a graph from the text of one forward(); graph/parse.cpp finds the classes.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/module_constants.h"
#include "graph/python_parser.h"

namespace assay::graph {

struct ForwardContext {
  /// The names that mean a constant: of the file, and `self.x` of the module.
  ModuleConstants constants;
  /// Without one (stock's readable form), the attributes are those that forward() mentions.
  bool has_constructor = true;
};

/// Appends the nodes of `forward` to `graph`, which has the module's attributes. Throws `UserError`
/// with the place.
void read_forward(const python::Source& source, const std::vector<python::Comment>& comments,
                  const python::Statement& forward, ForwardContext context, Graph& graph);

}  // namespace assay::graph
