#include "autograd/extract.h"

#include <algorithm>
#include <unordered_map>

#include "assay/error.h"

namespace assay::autograd {

using graph::Argument;
using graph::Graph;
using graph::NamedArgument;
using graph::Node;
using graph::Op;

namespace {

// Copies nodes of one graph into another, one by one.
class Copier {
 public:
  Copier(const Graph& original, Graph& copy) : original_(original), copy_(copy) {}

  bool has(const Node& node) const { return twins_.contains(&node); }

  void add_input(const Node& node) {
    const bool was_input = node.op() == Op::placeholder;
    Node& twin = copy_.placeholder(node.name(), was_input ? node.target().name() : std::string());
    if (was_input) twin.set_arguments(node.args());  // a default is a constant
    finish(node, twin);
  }

  void add(const Node& node) {
    std::vector<Argument> args;
    for (const Argument& argument : node.args()) args.push_back(translate(argument));
    std::vector<NamedArgument> kwargs;
    for (const NamedArgument& argument : node.kwargs()) {
      kwargs.push_back({argument.name, translate(argument.value)});
    }
    finish(node, add_twin(node, std::move(args), std::move(kwargs)));
  }

  Argument translate(const Argument& argument) const {
    return argument.map_nodes([this](Node& node) -> Argument { return twins_.at(&node); });
  }

 private:
  Node& add_twin(const Node& node, std::vector<Argument> args, std::vector<NamedArgument> kwargs) {
    const std::string& target = node.target().name();
    switch (node.op()) {
      case Op::get_attr:
        copy_attribute(target);
        return copy_.get_attr(target, node.name());
      case Op::call_function:
        return copy_.call_function(node.target(), std::move(args), std::move(kwargs), node.name());
      case Op::call_method:
        return copy_.call_method(target, std::move(args), std::move(kwargs), node.name());
      case Op::call_module:
        copy_attribute(target);
        return copy_.call_module(target, std::move(args), std::move(kwargs), node.name());
      case Op::placeholder:
      case Op::output:
        break;
    }
    throw InternalError("'" + node.name() + "' is needed, but is no input of the extracted graph");
  }

  void copy_attribute(const std::string& target) {
    const graph::Attribute* attribute = original_.attribute(target);
    if (attribute == nullptr) return;  // as in the original; running either says so
    const auto is_same = [&](const graph::Attribute& other) {
      return other.name == attribute->name;
    };
    if (std::ranges::any_of(copy_.attributes(), is_same)) return;
    copy_.attributes().push_back(*attribute);
    if (const Graph* subgraph = attribute->subgraph()) {
      // Passes change graphs in place: the halves must not share one.
      copy_.attributes().back().value = std::shared_ptr<Graph>(subgraph->clone());
    }
  }

  void finish(const Node& node, Node& twin) {
    internal_check(twin.name() == node.name(), "names of one graph stay unique in a part of it");
    twin.meta = node.meta;
    twins_.emplace(&node, &twin);
  }

  const Graph& original_;
  Graph& copy_;
  std::unordered_map<const Node*, Node*> twins_;
};

}  // namespace

std::unordered_set<const Node*> needed_nodes(const Extraction& extraction) {
  const std::unordered_set<const Node*> inputs(extraction.inputs.begin(), extraction.inputs.end());
  std::unordered_set<const Node*> needed;
  std::vector<const Node*> open(extraction.kept);
  const auto need = [&](const Node& node) { open.push_back(&node); };
  for (const Argument& output : extraction.outputs) output.for_each_node(need);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (needed.insert(node).second && !inputs.contains(node)) node->for_each_input(need);
  }
  return needed;
}

std::unique_ptr<Graph> extract(const Graph& original, const Extraction& extraction) {
  auto result = std::make_unique<Graph>(extraction.name);
  Copier copier(original, *result);
  for (const Node* input : extraction.inputs) copier.add_input(*input);

  const auto needed = needed_nodes(extraction);
  std::vector<const Node*> order;
  std::unordered_map<const Node*, std::size_t> position;
  for (const Node& node : original.nodes()) {
    if (!needed.contains(&node) || copier.has(node)) continue;
    position.emplace(&node, order.size());
    order.push_back(&node);
  }
  // Copies what `open` needs and has not been copied yet, in the original's order.
  const auto add_with_inputs = [&](std::vector<const Node*> open) {
    std::vector<const Node*> missing;
    std::unordered_set<const Node*> seen;
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (copier.has(*node) || !seen.insert(node).second) continue;
      missing.push_back(node);
      node->for_each_input([&](const Node& input) { open.push_back(&input); });
    }
    std::ranges::sort(missing, {}, [&](const Node* node) { return position.at(node); });
    for (const Node* node : missing) copier.add(*node);
  };
  for (const Node* node : order) {
    if (!extraction.is_placed_late || !extraction.is_placed_late(*node)) add_with_inputs({node});
  }
  graph::Tuple outputs;
  for (const Argument& output : extraction.outputs) {
    output.for_each_node([&](const Node& node) { add_with_inputs({&node}); });
    outputs.items.push_back(copier.translate(output));
  }
  Node& output = result->set_output(std::move(outputs));
  if (original.output() != nullptr) output.meta.stack = original.output()->meta.stack;
  return result;
}

}  // namespace assay::autograd
