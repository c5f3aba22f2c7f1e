// Cuts calls off the beginning: half of them, a quarter, ... one; what they computed becomes
// inputs.
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::optional<Candidate> propose_prefix(const Candidate& program, std::size_t round, std::size_t,
                                        repro::ContentStore&) {
  const auto all = atoms(*program.graph);
  return keep_atoms(program, all, all.size() >> (round + 1), all.size());
}

}  // namespace

Proposals passes::prefix() { return {&halvings, &one_proposal, &propose_prefix}; }

}  // namespace assay::reduce
