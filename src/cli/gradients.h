/// \file `assay run --backward`: the gradients of a graph's inputs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "aten/value.h"
#include "graph/graph.h"

namespace assay::cli {

using NamedGradients = std::vector<std::pair<std::string, at::Tensor>>;

/// Makes inputs that are no leaves keep their gradients; call it before the run.
void keep_gradients(const std::vector<aten::Value>& inputs);

/// Sums all floating-point results that require grad, runs backward, and reads the gradients of the
/// inputs that got one. Throws `UserError` if no result requires grad.
NamedGradients run_backward(const aten::Value& results, const std::vector<aten::Value>& inputs,
                            const graph::Graph& graph);

}  // namespace assay::cli
