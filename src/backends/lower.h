/// \file A captured graph as a graph of operators, before autograd: `torch.nn.functional.gelu`,
/// `x.view` and `x[0]` become the operators they call. Stock calls this a pre-dispatch graph.
#pragma once

#include "assay/compiler.h"

namespace assay::backends {

/// The request to compile the lowered graph instead. Its placeholders are the captured graph's,
/// then one for each attribute and constant tensor, which are bound. Numbers among the inputs are
/// constants of the graph. Runs the graph once on copies of the inputs; throws as
/// aten::record_calls.
CompileRequest lower(const CompileRequest& request);

}  // namespace assay::backends
