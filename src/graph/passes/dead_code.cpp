#include "graph/passes/passes.h"

namespace assay::graph {

void remove_dead_code(Graph& graph, PassContext& context) {
  // Backwards, so that what only a dead node used is seen dead in turn.
  for (auto position = graph.nodes().end(); position != graph.nodes().begin();) {
    --position;
    Node& node = *position;
    const bool may_go =
        node.op() == Op::get_attr || (node.is_call() && context.facts().is_pure(node));
    if (!node.users().empty() || !may_go) continue;
    if (!context.may_apply()) return;
    ++position;
    graph.erase(node);
  }
}

}  // namespace assay::graph
