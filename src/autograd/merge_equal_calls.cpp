#include "autograd/merge_equal_calls.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "aten/operators.h"
#include "autograd/operator_kinds.h"
#include "graph/print.h"

namespace assay::autograd {

using graph::Node;

namespace {

bool writes(const Node& node) {
  if (!node.is_call() || kind_of(node) != OperatorKind::effect) return false;
  const auto op = aten::find_operator(node.target());
  return !op || op->schema().is_mutable();
}

bool is_returned(const Node& node) {
  return std::ranges::any_of(node.users(),
                             [](const Node* user) { return user->op() == graph::Op::output; });
}

}  // namespace

std::unique_ptr<graph::Graph> merge_equal_calls(const graph::Graph& original) {
  auto graph = original.clone();
  if (std::ranges::any_of(graph->nodes(), writes)) return graph;
  // Two calls are the same if they print the same: names are unique, literals print exactly.
  std::unordered_map<std::string, Node*> first;
  for (auto position = graph->nodes().begin(); position != graph->nodes().end();) {
    Node& node = *position++;
    if (node.op() != graph::Op::get_attr && (!node.is_call() || must_run(node))) continue;
    const auto [known, is_new] = first.try_emplace(graph::print_call(node), &node);
    // Two results stay two tensors: the caller may change one of them.
    if (is_new || is_returned(node)) continue;
    node.replace_all_uses_with(*known->second);
    graph->erase(node);
  }
  return graph;
}

}  // namespace assay::autograd
