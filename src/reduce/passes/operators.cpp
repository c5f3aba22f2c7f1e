// A call that must stay, but perhaps not as that operator: the negative of an operand of the same
// size in its place.
#include <algorithm>

#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

const RecordedValue* tensor_of(const Candidate& program, const graph::Node& node) {
  const auto found = program.values->find(node.name());
  const bool is_tensor =
      found != program.values->end() && found->second.kind == RecordedValue::Kind::tensor;
  return is_tensor ? &found->second : nullptr;
}

const graph::Node* alike_operand(const Candidate& program, const graph::Node& node) {
  const RecordedValue* value = tensor_of(program, node);
  const graph::Node* alike = nullptr;
  if (value == nullptr) return nullptr;
  node.for_each_input([&](const graph::Node& operand) {
    const RecordedValue* other = tensor_of(program, operand);
    if (alike == nullptr && other != nullptr &&
        other->tensor.meta.dtype == value->tensor.meta.dtype &&
        other->tensor.meta.sizes == value->tensor.meta.sizes) {
      alike = &operand;
    }
  });
  return alike;
}

std::optional<Candidate> propose_operators(const Candidate& program, std::size_t, std::size_t index,
                                           repro::ContentStore&) {
  const graph::Node& node = *atoms(*program.graph)[index].front();
  const bool is_cheap = node.target().base_name() == "neg" || program.graph->size() < 4;
  if (is_cheap || program.values == nullptr) return std::nullopt;
  const graph::Node* operand = alike_operand(program, node);
  if (operand == nullptr) return std::nullopt;
  Edit edit(program);
  graph::Node& old = edit.node(node);
  const graph::Graph::InsertBefore before(edit.graph(), old);
  graph::Node& cheap = edit.graph().call_function(
      node.target().is_operator() ? "torch.ops.aten.neg.default" : "torch.neg",
      {&edit.node(*operand)});
  cheap.meta = node.meta;
  old.replace_all_uses_with(cheap);
  return edit.finish(false);
}

}  // namespace

Proposals passes::operators() {
  return {&one_round,
          [](const Candidate& program, std::size_t) {
            const std::size_t calls = count_calls(*program.graph);
            return calls < 2 ? 0 : calls;
          },
          &propose_operators};
}

}  // namespace assay::reduce
