// Lets calls read an earlier input of the same kind instead of another one: add(x, y) becomes
// add(x, x), and y goes.
#include "reduce/inputs.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

bool is_alike(const repro::Input& left, const repro::Input& right) {
  const auto* a = std::get_if<repro::TensorInput>(&left);
  const auto* b = std::get_if<repro::TensorInput>(&right);
  return a != nullptr && b != nullptr && a->meta.dtype == b->meta.dtype &&
         sizes_of(*a) == sizes_of(*b);
}

std::optional<Candidate> propose_operands(const Candidate& program, std::size_t, std::size_t index,
                                          repro::ContentStore&) {
  const std::size_t count = program.inputs.size();
  const std::size_t replaced = index % count;
  const std::size_t other = index / count;
  if (other >= replaced || !is_alike(program.inputs[other], program.inputs[replaced])) {
    return std::nullopt;
  }
  Edit edit(program);
  const auto placeholders = edit.graph().placeholders();
  placeholders[replaced]->replace_all_uses_with(*placeholders[other]);
  return edit.finish(false);
}

}  // namespace

Proposals passes::operands() {
  return {&one_round,
          [](const Candidate& program, std::size_t) {
            return program.inputs.size() * program.inputs.size();
          },
          &propose_operands};
}

}  // namespace assay::reduce
