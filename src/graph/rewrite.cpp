#include "graph/rewrite.h"

#include <set>

namespace assay::graph {

void map_arguments(Node& node, const std::function<Argument(const Argument&)>& map) {
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  for (const Argument& argument : node.args()) args.push_back(map(argument));
  for (const NamedArgument& argument : node.kwargs()) {
    kwargs.push_back({argument.name, map(argument.value)});
  }
  node.set_arguments(std::move(args), std::move(kwargs));
}

void replace_uses(Node& node, const Argument& replacement) {
  const auto replace = [&](Node& mentioned) -> Argument {
    return &mentioned == &node ? replacement : Argument(&mentioned);
  };
  const std::vector<Node*> users = node.users();  // changes while they are rewritten
  for (Node* user : std::set<Node*>(users.begin(), users.end())) {
    map_arguments(*user, [&](const Argument& argument) { return argument.map_nodes(replace); });
  }
}

}  // namespace assay::graph
