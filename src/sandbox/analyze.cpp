#include "sandbox/analyze.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "aten/runner.h"
#include "backends/compile.h"
#include "graph/copy_nodes.h"

namespace assay::sandbox {

namespace {

using aten::Value;
using graph::Node;

// The graph that makes one call; its inputs are the nodes that the call mentions, in order.
std::shared_ptr<const graph::Graph> graph_of_call(
    const graph::Graph& graph, const Node& node,
    std::shared_ptr<const graph::RecordedStage> stage) {
  auto alone = std::make_shared<graph::Graph>();
  alone->symbols() = graph.symbols();
  graph::NodeCopier copier(graph, *alone);
  node.for_each_input([&](const Node& input) {
    if (copier.has(input)) return;
    const bool is_subgraph =
        input.op() == graph::Op::get_attr && input.meta.value.tensor() == nullptr;
    if (is_subgraph) {
      copier.copy(input);
    } else {
      copier.copy_as_input(input);
    }
  });
  Node& call = copier.copy(node);
  call.meta.provenance = {std::move(stage), {node.id()}};
  alone->set_output(graph::Tuple{{graph::Argument(&call)}});
  return alone;
}

}  // namespace

std::optional<compare::Divergence> first_wrong_call(const graph::Graph& graph,
                                                    const std::vector<Value>& inputs,
                                                    const std::string& backend) {
  const auto stage = graph::record_stage(graph);
  const auto kernel = [&](const Node& node, std::vector<Value> values) -> Value {
    const auto alone = graph_of_call(graph, node, stage);
    // A backend takes tensors and numbers. What reads a tuple only takes an item of it.
    const bool is_for_backend = std::ranges::all_of(
        values, [](const Value& value) { return value.is_tensor() || value.is_number(); });
    const Value results = is_for_backend
                              ? backends::compile_for_values(backend, alone, values)(values)
                              : aten::GraphRunner(*alone).run(values);
    return aten::unpack(results).at(0);
  };
  return compare::first_divergence(graph, kernel, inputs);
}

}  // namespace assay::sandbox
