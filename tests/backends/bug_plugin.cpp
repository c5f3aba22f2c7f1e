// A backend with a bug of Assay's own: it cannot compile a graph of one call. And it is wrong where
// sin is called, so that there is something to reduce.
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "assay/backend.h"
#include "assay/error.h"
#include "graph/graph.h"

namespace {

std::shared_ptr<const assay::CompiledGraph> compile(const assay::CompileRequest& request) {
  const auto& nodes = request.graph->nodes();
  const auto is_call = [](const assay::graph::Node& node) { return node.is_call(); };
  assay::internal_check(std::ranges::count_if(nodes, is_call) > 1, "a graph has several calls");
  auto eager = assay::compile_graph("eager", request);
  const bool calls_sin = std::ranges::any_of(nodes, [&](const assay::graph::Node& node) {
    return node.is_call() && node.target().base_name() == "sin";
  });
  if (!calls_sin) return eager;
  return assay::make_compiled_graph(
      [eager](std::span<c10::IValue> inputs, assay::Outputs& outputs) {
        const std::size_t first = outputs.size();
        eager->call(inputs, outputs);
        outputs[first] = outputs[first].toTensor().add(1);
      });
}

[[maybe_unused]] const bool is_registered = [] {
  assay::register_backend({.name = "bug",
                           .description = "raises an internal error for a graph of one call",
                           .tags = {"testing"},
                           .binds_inputs = true,
                           .compile = &compile});
  return true;
}();

}  // namespace
