// Cuts calls off the beginning: half of them, a quarter, ... one; what they computed becomes
// inputs.
#include <bit>

#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::optional<Program> propose(const Program& program, std::size_t round, std::size_t,
                               repro::ContentStore&) {
  const auto all = atoms(*program.graph);
  return keep_atoms(program, all, all.size() >> (round + 1), all.size());
}

}  // namespace

Pass bisect_prefix() {
  return {"prefix",
          "cut calls off the beginning",
          true,
          [](const Program& program) {
            return static_cast<std::size_t>(std::bit_width(count_calls(*program.graph))) - 1;
          },
          [](const Program& program, std::size_t) {
            return std::size_t{count_calls(*program.graph) > 1 ? 1U : 0U};
          },
          &propose};
}

}  // namespace assay::reduce
