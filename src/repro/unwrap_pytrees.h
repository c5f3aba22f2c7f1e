/// \file The shell that torch.export and AOTAutograd's joint graphs put around a graph: it takes
/// its inputs apart and its results together with specs that the file does not have.
///
///   primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
///   return pytree.tree_unflatten([add, mul], self._out_spec)
///
/// Called by repro/repro_file.cpp.
#pragma once

#include "graph/graph.h"

namespace assay::repro {

/// Makes the leaves the graph's inputs and results. A graph that is written otherwise stays as it
/// is.
void unwrap_pytrees(graph::Graph& graph);

}  // namespace assay::repro
