// A failure often names the node it happened in. That call alone, with what it reads as inputs, is
// tried before anything else.
#include <algorithm>

#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

// The node of that name. Later stages name nodes after those of the graph with something appended.
const graph::Node* find_suspect(const graph::Graph& graph, std::string name) {
  while (true) {
    const graph::Node* node = graph.find(name);
    if (node != nullptr) return node->is_call() ? node : nullptr;
    const std::size_t end = name.rfind('_');
    if (end == std::string::npos || end == 0) return nullptr;
    name.resize(end);
  }
}

std::optional<Program> propose(const Program& program, std::size_t, std::size_t index,
                               repro::ContentStore&) {
  const graph::Node* suspect = find_suspect(*program.graph, program.suspects[index]);
  if (suspect == nullptr || count_calls(*program.graph) == 1) return std::nullopt;
  for (const Atom& atom : atoms(*program.graph)) {
    if (std::ranges::find(atom, suspect) != atom.end()) {
      return keep_calls(program, {atom.begin(), atom.end()});
    }
  }
  return std::nullopt;
}

}  // namespace

Pass keep_suspects() {
  return {"suspects", "keep only the call that the failure names", true, &one_round,
          [](const Program& program, std::size_t) { return program.suspects.size(); }, &propose};
}

}  // namespace assay::reduce
