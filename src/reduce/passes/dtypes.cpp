// float32 instead of any other floating-point type, in inputs and in the arguments of calls.
#include <ATen/core/Tensor.h>

#include "graph/rewrite.h"
#include "reduce/inputs.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::vector<c10::ScalarType> unusual_dtypes(const Candidate& program) {
  std::set<c10::ScalarType> found;
  for (const repro::Input& input : program.inputs) {
    const auto* tensor = std::get_if<repro::TensorInput>(&input);
    if (tensor == nullptr || tensor->meta.dtype == c10::ScalarType::Float) continue;
    if (c10::isFloatingType(tensor->meta.dtype)) found.insert(tensor->meta.dtype);
  }
  return {found.begin(), found.end()};
}

graph::Argument with_float32(const graph::Argument& argument, c10::ScalarType from) {
  const auto* dtype = argument.get_if<c10::ScalarType>();
  return dtype != nullptr && *dtype == from ? graph::Argument(c10::ScalarType::Float) : argument;
}

std::optional<Candidate> propose_dtypes(const Candidate& program, std::size_t, std::size_t index,
                                        repro::ContentStore& store) {
  const c10::ScalarType from = unusual_dtypes(program)[index];
  Edit edit(program);
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const auto* tensor = std::get_if<repro::TensorInput>(&program.inputs[i]);
    if (tensor == nullptr || tensor->meta.dtype != from) continue;
    const at::Tensor contents = input_contents(program, i, store);
    if (contents.defined()) {
      set_contents(edit.program(), i, contents.to(at::kFloat), store);
    } else {
      graph::TensorMeta meta = tensor->meta;
      meta.dtype = c10::ScalarType::Float;
      set_made_up(edit.program(), i, std::move(meta));
    }
  }
  for (graph::Node& node : edit.graph().nodes()) {
    if (!node.is_call()) continue;
    graph::map_arguments(
        node, [&](const graph::Argument& argument) { return with_float32(argument, from); });
  }
  return edit.finish(false);
}

}  // namespace

Proposals passes::dtypes() {
  return {&one_round,
          [](const Candidate& program, std::size_t) { return unusual_dtypes(program).size(); },
          &propose_dtypes};
}

}  // namespace assay::reduce
