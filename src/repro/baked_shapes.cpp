#include "repro/baked_shapes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "graph/rewrite.h"

namespace assay::repro {

namespace {

using graph::Argument;
using graph::Node;

// Calls whose second argument is the size of their result; for a few it is the first.
bool makes_size(const Node& node, std::size_t position) {
  static constexpr std::array<std::string_view, 5> kSecond = {"view", "reshape", "_unsafe_view",
                                                              "expand", "new_zeros"};
  static constexpr std::array<std::string_view, 5> kFirst = {"full", "zeros", "ones", "empty",
                                                             "rand"};
  const std::string_view name = node.target().base_name();
  const bool is_second = std::ranges::find(kSecond, name) != kSecond.end();
  const bool is_first = std::ranges::find(kFirst, name) != kFirst.end();
  return (is_second && position == 1) || (is_first && position == 0);
}

// The sizes that every use of the placeholder agrees on.
std::optional<Argument> sizes_by_use(const Node& placeholder) {
  const graph::TensorMeta* meta = nullptr;
  for (const Node* user : placeholder.users()) {
    const graph::TensorMeta* result = user->meta.value.tensor();
    if (result == nullptr || !user->is_call()) return std::nullopt;
    bool is_size = false;
    for (std::size_t i = 0; i < user->args().size(); ++i) {
      is_size |= user->args()[i].node() == &placeholder && makes_size(*user, i);
    }
    if (!is_size || (meta != nullptr && !(meta->sizes == result->sizes))) return std::nullopt;
    meta = result;
  }
  if (meta == nullptr) return std::nullopt;
  graph::List list;
  for (const graph::SizeExpr& size : meta->sizes) {
    if (!size.is_constant()) return std::nullopt;
    list.items.emplace_back(size);
  }
  return list;
}

}  // namespace

void bake_in(graph::Graph& graph, Node& placeholder, const Argument& sizes) {
  graph::replace_uses(placeholder, sizes);
  graph.erase(placeholder);
}

void bake_in_shapes(graph::Graph& graph) {
  for (Node* placeholder : graph.placeholders()) {
    if (placeholder->meta.value.known() || !placeholder->args().empty()) continue;
    if (const auto sizes = sizes_by_use(*placeholder)) bake_in(graph, *placeholder, *sizes);
  }
}

}  // namespace assay::repro
