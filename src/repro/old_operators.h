/// \file Names of operators that PyTorch has changed since a file was written. Called by
/// repro/repro_file.cpp.
#pragma once

#include "graph/graph.h"

namespace assay::repro {

/// Calls of `torch.ops.aten.view.SymInt` become calls of `torch.ops.aten.view`: before 2.0, an
/// overload with symbolic sizes had a name of its own; now each overload takes them.
void rename_old_operators(graph::Graph& graph);

}  // namespace assay::repro
