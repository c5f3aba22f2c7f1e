// The first half of the calls alone, or the second: with two workers both are tried at once.
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::optional<Candidate> propose_halves(const Candidate& program, std::size_t, std::size_t index,
                                        repro::ContentStore&) {
  const auto all = atoms(*program.graph);
  const std::size_t middle = all.size() / 2;
  return index == 0 ? keep_atoms(program, all, 0, middle)
                    : keep_atoms(program, all, middle, all.size());
}

}  // namespace

Proposals passes::halves() {
  return {&halvings,
          [](const Candidate& program, std::size_t) {
            return std::size_t{count_calls(*program.graph) > 1 ? 2U : 0U};
          },
          &propose_halves};
}

}  // namespace assay::reduce
