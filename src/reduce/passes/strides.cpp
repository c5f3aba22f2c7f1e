// Plain inputs: contiguous, each with a storage of its own; leaves that need no gradient.
#include "reduce/inputs.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

enum class Property { layout, leaf, gradient };

// True if the input was changed.
bool make_plain(Candidate& program, std::size_t index, Property property,
                repro::ContentStore& store) {
  auto* tensor = std::get_if<repro::TensorInput>(&program.inputs[index]);
  if (tensor == nullptr) return false;
  if (property == Property::leaf) return !std::exchange(tensor->is_leaf, true);
  if (property == Property::gradient) return std::exchange(tensor->meta.requires_grad, false);
  const std::int64_t bytes = *program.storages[tensor->storage].bytes.constant();
  std::int64_t needed = static_cast<std::int64_t>(c10::elementSize(tensor->meta.dtype));
  for (std::int64_t size : sizes_of(*tensor)) needed *= size;
  std::size_t users = 0;
  for (const repro::Input& other : program.inputs) {
    const auto* also = std::get_if<repro::TensorInput>(&other);
    users += also != nullptr && also->storage == tensor->storage ? 1 : 0;
  }
  const bool is_plain = users == 1 && bytes == needed && !tensor->is_conjugate &&
                        !tensor->is_negative &&
                        tensor->meta.strides == graph::contiguous_strides(tensor->meta.sizes);
  if (is_plain) return false;
  const at::Tensor contents = input_contents(program, index, store);
  if (contents.defined()) {
    set_contents(program, index, contents, store);
  } else {
    set_made_up(program, index, graph::TensorMeta(tensor->meta));
  }
  return true;
}

// Rounds: all inputs, then one by one; for each property.
std::optional<Candidate> propose_strides(const Candidate& program, std::size_t round,
                                         std::size_t index, repro::ContentStore& store) {
  const auto property = static_cast<Property>(round / 2);
  Candidate simpler = program;
  simpler.values = nullptr;
  bool has_changed = false;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (round % 2 == 0 || i == index) has_changed |= make_plain(simpler, i, property, store);
  }
  if (!has_changed) return std::nullopt;
  return simpler;
}

}  // namespace

Proposals passes::strides() {
  return {[](const Candidate&) { return std::size_t{6}; },
          [](const Candidate& program, std::size_t round) {
            return round % 2 == 0 ? std::size_t{1} : program.inputs.size();
          },
          &propose_strides};
}

}  // namespace assay::reduce
