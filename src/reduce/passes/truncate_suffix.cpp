// Cuts calls off the end: half of them, a quarter, ... one; what is then last becomes a result.
#include <bit>

#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::size_t halvings(const Program& program) {
  return static_cast<std::size_t>(std::bit_width(count_calls(*program.graph))) - 1;
}

std::optional<Program> propose(const Program& program, std::size_t round, std::size_t,
                               repro::ContentStore&) {
  const auto all = atoms(*program.graph);
  return keep_atoms(program, all, 0, all.size() - (all.size() >> (round + 1)));
}

}  // namespace

Pass truncate_suffix() {
  return {"suffix",
          "cut calls off the end",
          true,
          [](const Program& program) { return program.graph == nullptr ? 0 : halvings(program); },
          [](const Program& program, std::size_t) {
            return std::size_t{count_calls(*program.graph) > 1 ? 1U : 0U};
          },
          &propose};
}

}  // namespace assay::reduce
