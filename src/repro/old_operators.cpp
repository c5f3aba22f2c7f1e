#include "repro/old_operators.h"

#include "aten/operators.h"

namespace assay::repro {

void rename_old_operators(graph::Graph& graph) {
  constexpr std::string_view kSymbolic = ".SymInt";
  for (graph::Node& node : graph.nodes()) {
    const std::string& name = node.target().name();
    if (node.op() != graph::Op::call_function || !name.starts_with("torch.ops.") ||
        !name.ends_with(kSymbolic) || aten::find_operator(node.target())) {
      continue;
    }
    node.set_target(graph::Target(name.substr(0, name.size() - kSymbolic.size())));
  }
}

}  // namespace assay::repro
