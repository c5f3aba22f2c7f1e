// Removes calls and attribute reads that nobody uses and that only compute.
#include "graph/pass_manager.h"

namespace assay::graph {

namespace {

void remove_dead_code(Graph& graph, PassContext& context) {
  // Backwards, so that what only a dead node used is seen dead in turn.
  for (auto position = graph.nodes().end(); position != graph.nodes().begin();) {
    --position;
    Node& node = *position;
    const bool may_go =
        node.op() == Op::get_attr || (node.is_call() && context.facts(node).is_pure);
    if (!node.users().empty() || !may_go) continue;
    if (!context.may_apply()) return;
    ++position;
    graph.erase(node);
  }
}

const RegisterPass dead_code_pass({.name = "dead_code",
                                   .room = "graph",
                                   .description = "removes calls whose result is not used",
                                   .rewrite = remove_dead_code});

}  // namespace

}  // namespace assay::graph
