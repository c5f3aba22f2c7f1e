#include "graph/passes/noops.h"

#include <algorithm>
#include <string_view>

namespace assay::graph {

namespace {

// A permutation of equal sizes has equal metadata too; its order must be the identity.
bool keeps_order(const Node& node) {
  const std::string_view name = node.target().base_name();
  if (name == "transpose") {
    return node.args().size() == 3 && node.args()[1].get_if<std::int64_t>() != nullptr &&
           node.args()[2].get_if<std::int64_t>() != nullptr &&
           *node.args()[1].get_if<std::int64_t>() == *node.args()[2].get_if<std::int64_t>();
  }
  if (name != "permute") return true;
  if (node.args().size() != 2) return false;
  std::int64_t expected = 0;
  for (const Argument& item : node.args()[1].items()) {
    const auto* dimension = item.get_if<std::int64_t>();
    if (dimension == nullptr || *dimension != expected++) return false;
  }
  return true;
}

// With equal sizes and strides a slice must also begin at the start: its offset is not in the
// metadata.
bool keeps_offset(const Node& node) {
  if (node.target().base_name() != "slice") return true;
  for (const NamedArgument& argument : node.kwargs()) {
    if (argument.name == "start") return false;
  }
  if (node.args().size() < 3 || node.args()[2].is_none()) return true;
  const auto* start = node.args()[2].get_if<std::int64_t>();
  return start != nullptr && *start == 0;
}

bool is_matrix_transpose(const Node& node) { return node.calls("torch.ops.aten.t.default"); }

// What the node is another name of: its argument, or for `x.t().t()` the `x`.
Node* same_value(const Node& node, const FactsOf& facts) {
  if (node.args().empty()) return nullptr;
  Node* input = node.args()[0].node();
  if (input == nullptr) return nullptr;
  if (is_matrix_transpose(node)) {
    return is_matrix_transpose(*input) ? input->args()[0].node() : nullptr;
  }
  if (!facts(node).keeps_elements || !keeps_order(node) || !keeps_offset(node)) return nullptr;
  return input;
}

}  // namespace

Node* noop_source(const Node& node, const FactsOf& facts) {
  Node* source = same_value(node, facts);
  if (source == nullptr) return nullptr;
  const TensorMeta* before = source->meta.value.tensor();
  const TensorMeta* after = node.meta.value.tensor();
  if (before == nullptr || after == nullptr || !(*before == *after)) return nullptr;
  return source;
}

namespace {

void remove_noops(Graph& graph, PassContext& context) {
  for (auto position = graph.nodes().begin(); position != graph.nodes().end();) {
    Node& node = *position++;
    Node* source = noop_source(node, context.facts());
    if (source == nullptr || !context.facts(node).is_pure) continue;
    // A returned view is a different tensor object than its base: keep it.
    const bool is_returned = std::ranges::any_of(
        node.users(), [](const Node* user) { return user->op() == Op::output; });
    if (is_returned || !context.may_apply()) continue;
    node.replace_all_uses_with(*source);
    graph.erase(node);
  }
}

const RegisterPass noops_pass({.name = "noops",
                               .room = "graph",
                               .description = "removes views that change nothing",
                               .rewrite = remove_noops});

}  // namespace

}  // namespace assay::graph
