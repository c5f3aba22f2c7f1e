#include "capture/piecewise_graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "capture/pieces.h"

namespace assay::capture {

namespace {

using graph::Node;

// A call of Python is a piece of its own, and one ends behind each node of `last`.
std::vector<Piece> cut(const graph::Graph& graph, const NodeIds& last) {
  std::vector<Piece> pieces;
  std::unordered_set<const Node*> taken;
  Piece current;
  const auto close = [&] {
    if (!current.nodes.empty()) pieces.push_back(std::exchange(current, {}));
  };
  const auto is_last = [&](const Node* node) {
    return std::ranges::find(last, node->id()) != last.end();
  };
  for (const Node& node : graph.nodes()) {
    if (!node.is_call() || taken.contains(&node)) continue;
    std::vector<const Node*> together;
    append_with_items(node, together);
    taken.insert(together.begin(), together.end());
    const bool is_python = is_python_call(node);
    if (is_python) close();
    current.kind = is_python ? Piece::Kind::as_it_is : Piece::Kind::compiled;
    current.nodes.insert(current.nodes.end(), together.begin(), together.end());
    if (is_python || std::ranges::any_of(together, is_last)) close();
  }
  close();
  return pieces;
}

}  // namespace

std::shared_ptr<const CompiledGraph> make_piecewise(const CompileRequest& request, Compiler compile,
                                                    const NodeIds& last) {
  const graph::Graph& graph = *request.graph;
  const bool has_calls_of_python = std::ranges::any_of(graph.nodes(), is_python_call);
  const bool has_other_calls = std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return node.is_call() && !is_python_call(node) && !node.calls("operator.getitem");
  });
  // A call for its effect alone adds a hook to a tensor, which the piece before has used already.
  const bool has_effects = std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return is_python_call(node) && node.users().empty(); });
  if ((!has_calls_of_python && last.empty()) || !has_other_calls || has_effects ||
      !gives_nodes(graph)) {
    return nullptr;
  }
  const std::vector<Piece> pieces = cut(graph, last);
  if (!keep_modes(graph, pieces)) return nullptr;
  return run_in_pieces(request, std::move(compile), pieces);
}

}  // namespace assay::capture
