// Where two calls compute the same from the same, keeps the first. Autograd's formulas call again
// what forward has called; a partitioner must see that it is the same value.
//
// Random numbers and assertions in between change no tensor, so they do not matter. In a graph that
// may write to a tensor nothing is merged: equal calls before and after the write are not equal.
#include <algorithm>
#include <ranges>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "graph/pass_manager.h"
#include "graph/print.h"

namespace assay::graph {

namespace {

// The nodes whose memory the caller gets: the results, and what they may be views of.
std::unordered_set<const Node*> returned_memory(const Graph& graph, const PassContext& context) {
  std::unordered_set<const Node*> returned;
  for (const Node& node : graph.nodes() | std::views::reverse) {
    const bool passes_on = node.op() == Op::output || (node.is_call() && returned.contains(&node) &&
                                                       context.facts(node).may_share_memory);
    if (!passes_on) continue;
    node.for_each_input([&](const Node& input) { returned.insert(&input); });
  }
  return returned;
}

void merge_common_subexpressions(Graph& graph, PassContext& context) {
  const bool may_write = std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return node.is_call() && context.facts(node).may_write;
  });
  if (may_write) return;
  const std::unordered_set<const Node*> returned = returned_memory(graph, context);
  // Two calls are the same if they print the same: names are unique, literals print exactly.
  std::unordered_map<std::string, Node*> first;
  for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
    Node& node = *position++;
    if (node.op() != Op::get_attr && !(node.is_call() && context.facts(node).is_pure)) continue;
    const auto [known, is_new] = first.try_emplace(print_call(node), &node);
    // Two results must stay two tensors: the caller may change one of them.
    if (is_new || returned.contains(&node)) continue;
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
