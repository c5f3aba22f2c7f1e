#include "sandbox/analyze.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>

#include "aten/runner.h"
#include "backends/compile.h"

namespace assay::sandbox {

namespace {

using aten::Value;
using graph::Node;

// The graph that makes one call; its inputs are the nodes that the call mentions, in order.
std::shared_ptr<const graph::Graph> graph_of_call(const graph::Graph& graph, const Node& node) {
  auto alone = std::make_shared<graph::Graph>();
  alone->attributes() = graph.clone()->attributes();
  std::map<const Node*, Node*> inputs;
  node.for_each_input([&](const Node& input) {
    if (inputs.contains(&input)) return;
    Node& placeholder = input.op() == graph::Op::get_attr && input.meta.value.tensor() == nullptr
                            ? alone->get_attr(input.target().name(), input.name())
                            : alone->placeholder(input.name());
    placeholder.meta = input.meta;
    inputs.emplace(&input, &placeholder);
  });
  const auto own = [&](Node& mentioned) -> graph::Argument { return inputs.at(&mentioned); };
  std::vector<graph::Argument> args;
  std::vector<graph::NamedArgument> kwargs;
  for (const auto& argument : node.args()) args.push_back(argument.map_nodes(own));
  for (const auto& argument : node.kwargs()) {
    kwargs.push_back({argument.name, argument.value.map_nodes(own)});
  }
  Node& call =
      node.op() == graph::Op::call_method
          ? alone->call_method(node.target().name(), std::move(args), std::move(kwargs),
                               node.name())
          : alone->call_function(node.target(), std::move(args), std::move(kwargs), node.name());
  call.meta = node.meta;
  alone->set_output(graph::Tuple{{graph::Argument(&call)}});
  return alone;
}

}  // namespace

std::optional<compare::Divergence> first_wrong_call(const graph::Graph& graph,
                                                    const std::vector<Value>& inputs,
                                                    const std::string& backend) {
  const auto kernel = [&](const Node& node, std::vector<Value> values) -> Value {
    const auto alone = graph_of_call(graph, node);
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
