#include "graph/copy_nodes.h"

#include <algorithm>

#include "assay/error.h"

namespace assay::graph {

Argument NodeCopier::translate(const Argument& argument) const {
  return argument.map_nodes([this](Node& node) {
    const auto found = map_.find(&node);
    if (found == map_.end()) {
      throw InternalError("'" + node.name() + "' is used by a copied node, but was not copied");
    }
    return found->second;
  });
}

void NodeCopier::set_arguments(const Node& original, Node& copy) {
  std::vector<Argument> args;
  args.reserve(original.args().size());
  for (const Argument& argument : original.args()) args.push_back(translate(argument));
  std::vector<NamedArgument> kwargs;
  kwargs.reserve(original.kwargs().size());
  for (const NamedArgument& argument : original.kwargs()) {
    kwargs.push_back({argument.name, translate(argument.value)});
  }
  copy.set_arguments(std::move(args), std::move(kwargs));
}

void NodeCopier::finish(const Node& original, Node& copy) {
  copy.meta = original.meta;
  map_.insert_or_assign(&original, &copy);
}

// Gives what the copy calls it. A missing attribute stays missing; running either graph says so.
std::string NodeCopier::copy_attribute(const std::string& target) {
  const Attribute* attribute = from_.attribute(target);
  if (attribute == nullptr) return target;
  const std::string name = attribute_prefix_ + attribute->name;
  const auto is_known = [&](const Attribute& known) { return known.name == name; };
  if (std::ranges::none_of(to_.attributes(), is_known)) {
    Attribute copy = {name, attribute->value};
    if (const Graph* subgraph = attribute->subgraph(); subgraph && !attribute_prefix_.empty()) {
      // Class names must differ too.
      std::shared_ptr<Graph> renamed = subgraph->clone();
      renamed->set_name(attribute_prefix_ + subgraph->name());
      copy.value = std::move(renamed);
    }
    to_.attributes().push_back(std::move(copy));
  }
  return attribute_prefix_ + target;
}

Node& NodeCopier::copy(const Node& original) {
  std::string target = original.target().name();
  if (original.op() == Op::get_attr || original.op() == Op::call_module) {
    target = copy_attribute(target);
  }
  if (original.op() == Op::output) return to_.set_output(translate(original.args().at(0)));
  Node& copy = to_.append(original.op(), original.name(), std::move(target));
  set_arguments(original, copy);
  finish(original, copy);
  return copy;
}

Node& NodeCopier::copy_as_input(const Node& original) {
  if (original.op() == Op::placeholder) return copy(original);
  Node& copy = to_.placeholder(original.name());
  finish(original, copy);
  return copy;
}

std::unique_ptr<Graph> copy_graph(const Graph& graph, NodeMap& copies) {
  auto result = std::make_unique<Graph>(graph.name());
  result->attributes() = graph.attributes();  // subgraphs are shared
  result->symbols() = graph.symbols();
  result->identity_ = graph.identity_;
  NodeCopier copier(graph, *result);
  copier.map_.reserve(graph.size());
  for (const Node& node : graph.nodes()) {
    Node& copy = result->insert(node.id(), node.op(), node.name(), node.target());
    copier.set_arguments(node, copy);
    copier.finish(node, copy);
    if (&node == graph.output()) result->output_ = &copy;
  }
  result->next_id_ = graph.next_id_;
  copies = std::move(copier.map_);
  return result;
}

}  // namespace assay::graph
