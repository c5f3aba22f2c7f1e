// Cuts calls off the end: half of them, a quarter, ... one; what is then last becomes a result.
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::optional<Candidate> propose_suffix(const Candidate& program, std::size_t round, std::size_t,
                                        repro::ContentStore&) {
  const auto all = atoms(*program.graph);
  return keep_atoms(program, all, 0, all.size() - (all.size() >> (round + 1)));
}

}  // namespace

Proposals passes::suffix() { return {&halvings, &one_proposal, &propose_suffix}; }

}  // namespace assay::reduce
