// Values that nobody needs to send: contents that are made up when the file is loaded (random
// floats, zeros), else ones. All inputs at once, then one by one.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones_like.h>

#include "reduce/inputs.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

bool has_contents(const Candidate& program, std::size_t input) {
  const auto* tensor = std::get_if<repro::TensorInput>(&program.inputs[input]);
  return tensor != nullptr && !program.storages[tensor->storage].hash.empty();
}

void forget_contents(Candidate& program, std::size_t input) {
  const auto& tensor = std::get<repro::TensorInput>(program.inputs[input]);
  program.storages[tensor.storage].hash.clear();
}

std::optional<Candidate> propose_values(const Candidate& program, std::size_t round,
                                        std::size_t index, repro::ContentStore& store) {
  Candidate simpler = program;
  simpler.values = nullptr;
  if (round == 0) {
    bool has_changed = false;
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      if (!has_contents(program, i)) continue;
      forget_contents(simpler, i);
      has_changed = true;
    }
    if (!has_changed) return std::nullopt;
    return simpler;
  }
  if (!has_contents(program, index)) return std::nullopt;
  if (round == 1) {
    forget_contents(simpler, index);
    return simpler;
  }
  const at::Tensor contents = input_contents(program, index, store);
  const at::Tensor ones = at::ones_like(contents);
  if (ones.equal(contents)) return std::nullopt;
  set_contents(simpler, index, ones, store);
  return simpler;
}

}  // namespace

Proposals passes::values() {
  return {[](const Candidate&) { return std::size_t{3}; },
          [](const Candidate& program, std::size_t round) {
            return round == 0 ? std::size_t{1} : program.inputs.size();
          },
          &propose_values};
}

}  // namespace assay::reduce
