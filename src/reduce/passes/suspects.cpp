// A failure often names the node it happened in, or the few that went into a kernel. These calls
// alone, with what they read as inputs, are tried before anything else.
#include <algorithm>

#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

// So many are tried one by one; of more, all together.
constexpr std::size_t kFew = 4;

std::optional<Candidate> propose_suspects(const Candidate& program, std::size_t round,
                                          std::size_t index, repro::ContentStore&) {
  const auto is_named = [&](const graph::Node* node) {
    const auto found = std::ranges::find(program.suspects, node->name());
    if (found == program.suspects.end()) return false;
    return round == 0 || found == program.suspects.begin() + static_cast<std::ptrdiff_t>(index);
  };
  std::set<const graph::Node*> kept;
  for (const Atom& atom : atoms(*program.graph)) {
    if (std::ranges::any_of(atom, is_named)) kept.insert(atom.begin(), atom.end());
  }
  if (kept.empty() || kept.size() == count_calls(*program.graph)) return std::nullopt;
  return keep_calls(program, kept);
}

}  // namespace

Proposals passes::suspects() {
  return {[](const Candidate&) { return std::size_t{2}; },
          [](const Candidate& program, std::size_t round) {
            if (round == 0) return std::size_t{program.suspects.size() > kFew ? 1U : 0U};
            return program.suspects.size() > kFew ? 0U : program.suspects.size();
          },
          &propose_suspects};
}

}  // namespace assay::reduce
