// Where two calls compute the same from the same, keeps the first. Autograd's formulas call again
// what forward has called; a partitioner must see that it is the same value.
//
// Random numbers and assertions in between change no tensor, so they do not matter. In a graph that
// may write to a tensor nothing is merged: equal calls before and after the write are not equal.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "graph/pass_manager.h"
#include "graph/print.h"

namespace assay::graph {

namespace {

bool is_returned(const Node& node) {
  return std::ranges::any_of(node.users(),
                             [](const Node* user) { return user->op() == Op::output; });
}

void merge_common_subexpressions(Graph& graph, PassContext& context) {
  const bool may_write = std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return node.is_call() && context.facts(node).may_write;
  });
  if (may_write) return;
  // Two calls are the same if they print the same: names are unique, literals print exactly.
  std::unordered_map<std::string, Node*> first;
  for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
    Node& node = *position++;
    if (node.op() != Op::get_attr && !(node.is_call() && context.facts(node).is_pure)) continue;
    const auto [known, is_new] = first.try_emplace(print_call(node), &node);
    // Two results must stay two tensors: the caller may change one of them.
    if (is_new || is_returned(node)) continue;
    if (!context.may_apply()) return;
    node.replace_all_uses_with(*known->second);
    graph.erase(node);
  }
}

const RegisterPass common_subexpressions_pass({.name = "common_subexpressions",
                                               .room = "graph",
                                               .description = "computes equal expressions once",
                                               .rewrite = merge_common_subexpressions});

}  // namespace

}  // namespace assay::graph
