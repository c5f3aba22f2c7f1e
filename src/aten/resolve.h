/// \file Finds what a node's target means without Python: an operator, several overloads to choose
/// from, or one of aten/torch_functions.h.
#pragma once

#include <vector>

#include "aten/match.h"
#include "aten/torch_functions.h"
#include "graph/graph.h"

namespace assay::aten {

/// What to do for a target. Exactly one of `function` and `overloads` is set.
struct Resolution {
  const TorchFunction* function = nullptr;
  std::vector<c10::OperatorHandle> overloads;
  Dialect dialect = Dialect::function;
};

/// Resolves a call_function or call_method by its name. Throws `UserError`: for an unknown operator
/// with the nearest names, for a Python function that has no equivalent here that it needs a Python
/// process.
Resolution resolve(graph::Op op, const graph::Target& target);

/// Makes the call with the given arguments.
Value call(const Resolution& resolution, const Arguments& arguments, const std::string& name);

}  // namespace assay::aten
