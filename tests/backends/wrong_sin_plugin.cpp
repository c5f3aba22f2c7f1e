// A backend that is not part of the library, as somebody else would write it: eager whose first
// result has the wrong sign if the graph calls sin.
#include <ATen/core/Tensor.h>

#include "assay/backend.h"
#include "graph/graph.h"

namespace {

bool calls_sin(const assay::graph::Graph& graph) {
  for (const assay::graph::Node& node : graph.nodes()) {
    if (node.is_call() && node.target().base_name() == "sin") return true;
  }
  return false;
}

std::shared_ptr<const assay::CompiledGraph> compile(const assay::CompileRequest& request) {
  auto eager = assay::compile_graph("eager", request);
  if (!calls_sin(*request.graph)) return eager;
  return assay::make_compiled_graph(
      [eager](std::span<c10::IValue> inputs, assay::Outputs& outputs) {
        const std::size_t first = outputs.size();
        eager->call(inputs, outputs);
        outputs[first] = outputs[first].toTensor().neg();
      });
}

[[maybe_unused]] const bool is_registered = [] {
  assay::register_backend({.name = "wrong_sin",
                           .description = "eager with the wrong sign where sin is called",
                           .tags = {"testing"},
                           .binds_inputs = true,
                           .compile = &compile});
  return true;
}();

}  // namespace
