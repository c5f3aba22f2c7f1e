/// \file A graph of operators as TorchScript's executor takes it.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <vector>

#include "graph/graph.h"

namespace assay::backends {

struct TorchScriptGraph {
  /// Takes the tensors of `inputs`, gives the values of `outputs`, and after them random tensors
  /// that are of no use: without them TorchScript would not draw these, and shift all later ones.
  std::shared_ptr<torch::jit::Graph> graph;
  std::vector<std::size_t> inputs;          ///< Which placeholders it takes: those that are used.
  std::vector<const graph::Node*> outputs;  ///< The nodes that the graph's output mentions.
};

/// Throws `BackendError` for a call that TorchScript has no operator for. `backend` is for
/// messages.
TorchScriptGraph to_torchscript(const graph::Graph& graph, std::string_view backend);

}  // namespace assay::backends
