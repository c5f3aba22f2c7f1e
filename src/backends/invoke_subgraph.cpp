// Runs each half as one invoke_subgraph call, to try higher-order operators on any program.
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

autograd::CompiledGraph compile_half(const std::shared_ptr<const graph::Graph>& graph,
                                     autograd::GraphRole role) {
  auto outer = wrap(*graph, std::string(autograd::to_string(role)) + "_subgraph");
  observe::artifact(observe::Artifact::post_grad_graphs, [&] { return graph::print(*outer); });
  return autograd::run_with_aten(std::move(outer), role);
}

}  // namespace

Callable compile_invoke_subgraph(const Subject& subject) {
  return compile_ahead_of_time(
      subject, {.partitioner = &autograd::partition_min_cut, .compiler = &compile_half});
}

}  // namespace assay::backends
