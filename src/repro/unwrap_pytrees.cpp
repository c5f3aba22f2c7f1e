#include "repro/unwrap_pytrees.h"

#include <algorithm>
#include <optional>

#include "graph/rewrite.h"

namespace assay::repro {

namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;

bool ends_with_function(const Node& node, std::string_view function) {
  const std::string& name = node.target().name();
  return node.op() == graph::Op::call_function && name.ends_with(function) &&
         name.size() > function.size() && name[name.size() - function.size() - 1] == '.' &&
         name.find("pytree") != std::string::npos;
}

void add_leaves(const Argument& tree, std::vector<Argument>& leaves) {
  const bool is_container = tree.get_if<graph::List>() != nullptr ||
                            tree.get_if<graph::Tuple>() != nullptr ||
                            tree.get_if<graph::Dict>() != nullptr;
  if (!is_container) {
    leaves.push_back(tree);
    return;
  }
  for (const Argument& item : tree.items()) add_leaves(item, leaves);
}

// `flat[2]`: 2.
std::optional<std::size_t> item_index(const Node& user, const Node& flat) {
  if (!user.calls("operator.getitem") || user.args().size() != 2 || user.args()[0].node() != &flat)
    return std::nullopt;
  const auto* index = user.args()[1].get_if<std::int64_t>();
  if (index == nullptr || *index < 0) return std::nullopt;
  return static_cast<std::size_t>(*index);
}

// The items that are read, in order; nothing if the list is used in any other way.
std::optional<std::vector<Node*>> items_of(const Node& flat) {
  std::vector<Node*> items;
  for (Node* user : flat.users()) {
    const auto index = item_index(*user, flat);
    if (!index || *index > flat.users().size()) return std::nullopt;
    if (items.size() <= *index) items.resize(*index + 1);
    if (items[*index] != nullptr) return std::nullopt;
    items[*index] = user;
  }
  if (std::ranges::find(items, nullptr) != items.end()) return std::nullopt;
  return items;
}

// A joint graph's parameters are lists of what the graph takes.
bool are_undescribed_inputs(const std::vector<Argument>& leaves) {
  return std::ranges::all_of(leaves, [](const Argument& leaf) {
    const Node* node = leaf.node();
    return node != nullptr && node->op() == graph::Op::placeholder && node->users().size() == 1 &&
           !node->meta.value.known();
  });
}

void flatten(Graph& graph, Node& flat) {
  const auto items = items_of(flat);
  if (!items || flat.args().empty()) return;
  std::vector<Argument> leaves;
  add_leaves(flat.args()[0], leaves);
  if (items->size() > leaves.size()) {
    if (leaves.empty() || !are_undescribed_inputs(leaves)) return;
    const Graph::InsertBefore here(graph, *leaves[0].node());
    std::vector<Argument> inputs;
    for (Node* item : *items) {
      const std::string name = item->name();
      graph.rename(*item, name + "_item");
      Node& input = graph.placeholder(name);
      input.meta = item->meta;
      inputs.emplace_back(&input);
    }
    for (std::size_t i = 0; i < items->size(); ++i) graph::replace_uses(*(*items)[i], inputs[i]);
    for (Node* item : *items) graph.erase(*item);
    graph.erase(flat);
    for (const Argument& leaf : leaves) graph.erase(*leaf.node());
    return;
  }
  for (std::size_t i = 0; i < items->size(); ++i) {
    graph::replace_uses(*(*items)[i], leaves[i]);
    graph.erase(*(*items)[i]);
  }
  graph.erase(flat);
}

bool is_of_the_shell(std::string_view attribute) {
  return attribute == "_in_spec" || attribute == "_out_spec" || attribute == "_guards_fn";
}

bool is_spec_or_guard(const Node& node) {
  const bool reads = node.op() == graph::Op::get_attr || node.op() == graph::Op::call_module;
  return reads && is_of_the_shell(node.target().name());
}

}  // namespace

void unwrap_pytrees(Graph& graph) {
  std::vector<Node*> nodes;
  for (Node& node : graph.nodes()) nodes.push_back(&node);
  std::vector<Node*> unflattened;
  std::vector<Node*> rest;
  for (Node* node : nodes) {
    if (ends_with_function(*node, "tree_unflatten") && !node->args().empty()) {
      unflattened.push_back(node);
    } else if (is_spec_or_guard(*node)) {
      rest.push_back(node);
    }
  }
  std::vector<Node*> flat;
  for (Node* node : nodes) {
    if (ends_with_function(*node, "tree_flatten_spec")) flat.push_back(node);
  }
  if (flat.empty() && unflattened.empty()) return;
  for (Node* node : unflattened) {
    graph::replace_uses(*node, node->args()[0]);
    graph.erase(*node);
  }
  for (Node* node : flat) flatten(graph, *node);
  for (auto node = rest.rbegin(); node != rest.rend(); ++node) {
    if ((*node)->users().empty()) graph.erase(**node);
  }
  std::erase_if(graph.attributes(), [&](const graph::Attribute& attribute) {
    return is_of_the_shell(attribute.name) &&
           std::ranges::none_of(graph.nodes(), [&](const Node& node) {
             return (node.op() == graph::Op::get_attr || node.op() == graph::Op::call_module) &&
                    node.target().name() == attribute.name;
           });
  });
}

}  // namespace assay::repro
