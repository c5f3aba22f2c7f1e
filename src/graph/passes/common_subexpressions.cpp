#include <algorithm>
#include <string>
#include <unordered_map>

#include "graph/passes/passes.h"
#include "graph/print.h"

namespace assay::graph {

namespace {

bool is_returned(const Node& node) {
  return std::ranges::any_of(node.users(),
                             [](const Node* user) { return user->op() == Op::output; });
}

}  // namespace

void merge_common_subexpressions(Graph& graph, PassContext& context) {
  const auto is_pure = [&](const Node& node) { return context.facts().is_pure(node); };
  const bool all_pure = std::ranges::all_of(
      graph.nodes(), [&](const Node& node) { return !node.is_call() || is_pure(node); });
  if (!all_pure) return;
  // Two calls are the same if they print the same: names are unique, literals print exactly.
  std::unordered_map<std::string, Node*> first;
  for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
    Node& node = *position++;
    if (!node.is_call() && node.op() != Op::get_attr) continue;
    auto [known, is_new] = first.try_emplace(print_call(node), &node);
    if (is_new) continue;
    // Two results must stay two tensors: the caller may change one of them.
    if (is_returned(node)) continue;
    if (!context.may_apply()) return;
    node.replace_all_uses_with(*known->second);
    graph.erase(node);
  }
}

}  // namespace assay::graph
