#include "compare/piece.h"

#include <algorithm>
#include <unordered_set>

#include "assay/error.h"

namespace assay::compare {

namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::Op;

bool is_subgraph(const Graph& graph, const Node& node) {
  if (node.op() != Op::get_attr) return false;
  const graph::Attribute* attribute = graph.attribute(node.target().name());
  return attribute != nullptr && attribute->subgraph() != nullptr;
}

Node& append_copy(Graph& graph, const Node& node, std::vector<Argument> args,
                  std::vector<graph::NamedArgument> kwargs) {
  const std::string& target = node.target().name();
  switch (node.op()) {
    case Op::get_attr:
      return graph.get_attr(target, node.name());
    case Op::call_function:
      return graph.call_function(target, std::move(args), std::move(kwargs), node.name());
    case Op::call_method:
      return graph.call_method(target, std::move(args), std::move(kwargs), node.name());
    case Op::call_module:
      return graph.call_module(target, std::move(args), std::move(kwargs), node.name());
    case Op::placeholder:
    case Op::output:
      break;
  }
  throw InternalError("only calls and attributes are cut out");
}

bool depends_on(const Node& node, const std::unordered_set<const Node*>& others) {
  bool found = false;
  node.for_each_input([&](const Node& input) { found = found || others.contains(&input); });
  return found;
}

std::vector<const Node*> mentions(const Node& node) {
  std::vector<const Node*> found;
  node.for_each_input([&](const Node& input) { found.push_back(&input); });
  return found;
}

bool reads(const Node& node, const Node& other) {
  const std::vector<const Node*> found = mentions(node);
  return std::ranges::find(found, &other) != found.end();
}

}  // namespace

Piece cut_out(const Graph& graph, const std::vector<const Node*>& nodes, const Node& result) {
  Piece piece;
  piece.graph = std::make_unique<Graph>(graph.name());
  piece.graph->attributes() = graph.attributes();
  std::unordered_map<const Node*, Node*> copies;
  const std::unordered_set<const Node*> inside(nodes.begin(), nodes.end());
  for (const Node* node : nodes) {
    node->for_each_input([&](const Node& input) {
      if (inside.contains(&input) || copies.contains(&input) || is_subgraph(graph, input)) return;
      copies[&input] = &piece.graph->placeholder(input.name());
      copies[&input]->meta = input.meta;
      piece.inputs.push_back(&input);
    });
  }
  const std::function<Argument(Node&)> replace = [&](Node& mentioned) -> Argument {
    Node*& copy = copies[&mentioned];
    if (copy == nullptr) copy = &piece.graph->get_attr(mentioned.target().name(), mentioned.name());
    return copy;
  };
  for (const Node* node : nodes) {
    std::vector<Argument> args;
    std::vector<graph::NamedArgument> kwargs;
    for (const Argument& argument : node->args()) args.push_back(argument.map_nodes(replace));
    for (const graph::NamedArgument& argument : node->kwargs()) {
      kwargs.push_back({argument.name, argument.value.map_nodes(replace)});
    }
    Node& copy = append_copy(*piece.graph, *node, std::move(args), std::move(kwargs));
    copy.meta = node->meta;
    copies[node] = &copy;
  }
  piece.graph->set_output(copies.at(&result));
  return piece;
}

Correspondence::Correspondence(const Graph& reference, const Graph& suspect) : suspect_(suspect) {
  const Node* owner = nullptr;
  std::unordered_set<const Node*> from_owner;
  for (const Node& node : suspect.nodes()) {
    if (node.op() == Op::output) break;
    if (const Node* known = reference.find(node.name())) {
      owner = known;
      meaning_[&node] = known;
      groups_[owner] = {&node, {}};
      from_owner = {&node};
    } else if (owner != nullptr && depends_on(node, from_owner)) {
      owners_[&node] = owner;
      if (node.users().empty()) groups_[owner].effects.push_back(&node);
      from_owner.insert(&node);
    }
  }
  find_replacements(reference);
  const bool has_calls = std::ranges::any_of(
      groups_, [](const auto& group) { return group.first->op() != Op::placeholder; });
  if (!has_calls) {
    throw UserError("the two graphs have no calls with the same name",
                    "the nodes of the suspect graph are matched with the reference by name");
  }
}

// A node takes another's place if the same call reads the one in the suspect and the other in the
// reference. A call that is made of others in the suspect is no longer the same: what it reads
// are its own parts.
void Correspondence::find_replacements(const Graph& reference) {
  for (const Node& user : suspect_.nodes()) {
    const Node* same_user =
        user.op() == Op::output ? reference.output() : reference.find(user.name());
    if (same_user == nullptr || !(same_user->target() == user.target())) continue;
    const std::vector<const Node*> here = mentions(user);
    const std::vector<const Node*> there = mentions(*same_user);
    if (here.size() != there.size()) continue;
    for (std::size_t i = 0; i < here.size(); ++i) {
      const auto owner = owners_.find(here[i]);
      if (owner == owners_.end()) continue;
      const Node& replaced = *owner->second;
      // Or the owner changes what is read, in place.
      if (there[i] != &replaced && !reads(replaced, *there[i])) continue;
      groups_.at(&replaced).result = here[i];
      meaning_[here[i]] = &replaced;
    }
  }
}

const Node* Correspondence::stands_for(const Node& node) const {
  const auto found = meaning_.find(&node);
  return found == meaning_.end() ? nullptr : found->second;
}

Piece Correspondence::piece_for(const Node& node) const {
  const auto group = groups_.find(&node);
  if (group == groups_.end()) return {};
  // Backwards from the result, up to what the reference knows.
  std::unordered_set<const Node*> inside;
  std::vector<const Node*> open = group->second.effects;
  open.push_back(group->second.result);
  while (!open.empty()) {
    const Node* next = open.back();
    open.pop_back();
    if (next->op() == Op::placeholder) {
      throw UserError("the suspect graph has an input '" + next->name() +
                      "' that the reference does not have");
    }
    if (!inside.insert(next).second) continue;
    next->for_each_input([&](const Node& input) {
      const Node* meant = stands_for(input);
      const bool is_own = meant == &node;
      if ((meant == nullptr || is_own) && !is_subgraph(suspect_, input)) open.push_back(&input);
    });
  }
  std::vector<const Node*> ordered;
  for (const Node& candidate : suspect_.nodes()) {
    if (inside.contains(&candidate)) ordered.push_back(&candidate);
  }
  Piece piece = cut_out(suspect_, ordered, *group->second.result);
  for (const Node*& input : piece.inputs) input = stands_for(*input);
  return piece;
}

}  // namespace assay::compare
