// A failure often names the node it happened in. That call alone, with what it reads as inputs, is
// tried before anything else.
#include <algorithm>

#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::optional<Program> propose(const Program& program, std::size_t, std::size_t index,
                               repro::ContentStore&) {
  const graph::Node* suspect = program.graph->find(program.suspects[index]);
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
  return {"suspects",
          "keep only the call that the failure names",
          true,
          &one_round,
          [](const Program& program, std::size_t) { return program.suspects.size(); },
          &propose};
}

}  // namespace assay::reduce
