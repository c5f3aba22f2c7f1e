/// \file torch.fx.GraphModule <-> graph::Graph, behind `assay.fx` and custom Python backends
/// (python_backend.h). The GIL must be held.
///
/// What a GraphModule has beyond a graph's text form are objects: the tensors and modules that are
/// its attributes. They travel beside the graph.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <map>
#include <memory>
#include <string>

#include "graph/graph.h"

namespace assay::binding {

/// Tensors and modules by the dotted path of the attribute: `weight`, `cond_true_0.table`.
using AttributeObjects = std::map<std::string, pybind11::object, std::less<>>;

struct GraphAndObjects {
  std::shared_ptr<const graph::Graph> graph;
  AttributeObjects objects;
};

/// The graph of a GraphModule. `example_inputs`, a list or None, describe placeholders that do not
/// say themselves what they are. Names that have a meaning in the text form are changed, and a
/// dotted attribute gets a plain name (`layers.0.weight`: `layers_0_weight`). Throws `UserError`,
/// with the node, for what a graph cannot hold.
GraphAndObjects graph_from_module(pybind11::handle module, pybind11::handle example_inputs);

struct GraphModuleOptions {
  AttributeObjects objects = {};  ///< Attributes without one are made as the text form says.
  bool flat_output = false;       ///< Return a tuple of the output's leaves, as Dynamo's do.
};

/// The GraphModule of a graph. Its targets are the callables themselves; `meta` has 'stack_trace',
/// 'tensor_meta', and as 'example_value', in a graph of operators only as 'val', a FakeTensor, made
/// when it is asked for.
pybind11::object module_from_graph(const graph::Graph& graph, const GraphModuleOptions& options);

/// A graph whose tensor attributes that have an object are placeholders, the last ones, and those
/// tensors in their order. Attributes of subgraphs stay.
std::pair<std::shared_ptr<const graph::Graph>, std::vector<at::Tensor>> lift_attributes(
    const GraphAndObjects& source);

}  // namespace assay::binding
