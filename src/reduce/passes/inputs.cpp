// Takes out inputs: those that nobody reads, and integers, which become numbers in the text.
#include "graph/rewrite.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

bool is_literal(const repro::Input& input) {
  return std::holds_alternative<repro::IntegerInput>(input);
}

// Round 0: all unused inputs. Round 1: one integer each.
std::optional<Candidate> propose_inputs(const Candidate& program, std::size_t round,
                                        std::size_t index, repro::ContentStore&) {
  Edit edit(program);
  if (round == 0) {
    auto smaller = edit.finish(true);
    if (smaller->inputs.size() == program.inputs.size()) return std::nullopt;
    return smaller;
  }
  if (!is_literal(program.inputs[index])) return std::nullopt;
  graph::replace_uses(*edit.graph().placeholders()[index],
                      std::get<repro::IntegerInput>(program.inputs[index]).value);
  return edit.finish(true);
}

}  // namespace

Proposals passes::inputs() {
  return {[](const Candidate&) { return std::size_t{2}; },
          [](const Candidate& program, std::size_t round) {
            return round == 0 ? std::size_t{1} : program.inputs.size();
          },
          &propose_inputs};
}

}  // namespace assay::reduce
