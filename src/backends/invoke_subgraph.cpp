// Runs each half as one invoke_subgraph call, to try higher-order operators on any program.
#include "aten/runner.h"
#include "backends/aot.h"
#include "backends/backends.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::backends {

namespace {

// A graph that only calls `inner`.
std::shared_ptr<const graph::Graph> wrap(const graph::Graph& inner, const std::string& name) {
  auto outer = std::make_shared<graph::Graph>(inner.name());
  std::vector<graph::Argument> operands;
  for (const graph::Node* node : inner.placeholders()) {
    graph::Node& twin = outer->placeholder(node->name());
    twin.meta = node->meta;
    operands.emplace_back(&twin);
  }
  std::shared_ptr<graph::Graph> body = inner.clone();
  body->set_name(name + "_body");
  outer->attributes().push_back({name, body});
  graph::Node& subgraph = outer->get_attr(name);
  operands.insert(operands.begin(), {&subgraph, name});
  graph::Node& call =
      outer->call_function("torch.ops.higher_order.invoke_subgraph", std::move(operands));
  std::vector<graph::Argument> results;
  const auto& inner_results = inner.output()->args()[0].items();
  for (std::size_t i = 0; i < inner_results.size(); ++i) {
    if (inner_results[i].node() == nullptr) {
      results.push_back(inner_results[i]);  // None, where there is no gradient
      continue;
    }
    graph::Node& item =
        outer->call_function("operator.getitem", {&call, static_cast<std::int64_t>(i)});
    item.meta.value = inner_results[i].node()->meta.value;
    results.emplace_back(&item);
  }
  outer->set_output(graph::Tuple{std::move(results)});
  return outer;
}

CompiledPointer compile_half(const CompileRequest& request) {
  CompileRequest outer = request;
  outer.graph = wrap(*request.graph, std::string(to_string(request.role)) + "_subgraph");
  observe::artifact(observe::Artifact::post_grad_graphs,
                    [&] { return graph::print(*outer.graph); });
  return aten::run_with_aten(outer);
}

}  // namespace

CompiledPointer compile_invoke_subgraph(const CompileRequest& request) {
  return compile_ahead_of_time(
      request, {.partitioner = &autograd::partition_min_cut, .compiler = &compile_half});
}

}  // namespace assay::backends
