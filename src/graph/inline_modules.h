/// \file Replaces the modules of a graph by the functions they call and the tensors they hold, so
/// that a graph with `self.conv = Conv2d(3, 8, 3).cuda()` runs without Python. The repro room calls
/// it on what it reads.
#pragma once

#include "graph/graph.h"

namespace assay::graph {

/// Every call of a module whose constructor is one of torch.nn's becomes calls of
/// torch.nn.functional on parameters with torch.nn's names and initial distributions
/// (`conv_weight`, `conv_bias`). Modules that are not known stay. Throws `UserError` if the
/// arguments of a known one do not fit.
void inline_modules(Graph& graph);

}  // namespace assay::graph
