/// \file The same program in float64, whose results judge those of lower precision.
#pragma once

#include <memory>
#include <vector>

#include "aten/value.h"
#include "graph/graph.h"

namespace assay::compare {

struct Fp64Program {
  std::unique_ptr<graph::Graph> graph;
  std::vector<aten::Value> inputs;
};

/// Copies of `inputs` in which floating-point tensors are float64 (complex ones complex128), and of
/// `graph` in which calls that ask for a floating-point dtype ask for float64. Random numbers are
/// drawn in the dtype they had and then converted, so that they are the same ones.
Fp64Program cast_to_fp64(const graph::Graph& graph, const std::vector<aten::Value>& inputs);

/// The graph's half of it.
std::unique_ptr<graph::Graph> cast_graph_to_fp64(const graph::Graph& graph);

/// The inputs' half of it. Tensors that require grad do so again, as leaves.
std::vector<aten::Value> cast_inputs_to_fp64(const std::vector<aten::Value>& inputs);

}  // namespace assay::compare
