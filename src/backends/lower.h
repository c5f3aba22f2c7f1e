/// \file A captured graph as a graph of operators, before autograd: `torch.nn.functional.gelu`,
/// `x.view` and `x[0]` become the operators they call. Stock calls this a pre-dispatch graph.
#pragma once

#include <memory>
#include <vector>

#include "aten/value.h"
#include "backends/registry.h"
#include "graph/graph.h"

namespace assay::backends {

struct Lowered {
  /// The subject's placeholders, then one for each of `captured`. Numbers among the inputs are
  /// constants of the graph.
  std::shared_ptr<const graph::Graph> graph;
  std::vector<aten::Value> captured;  ///< Attributes and constant tensors.

  /// One call's inputs with the captured tensors after them.
  std::vector<aten::Value> with_captured(std::vector<aten::Value> inputs) const {
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    return inputs;
  }
};

/// Runs the graph once on copies of the inputs. Throws as aten::record_calls.
Lowered lower(const Subject& subject);

}  // namespace assay::backends
