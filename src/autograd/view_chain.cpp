#include "autograd/view_chain.h"

#include <ranges>
#include <vector>

#include "aten/operator_record.h"
#include "graph/copy_nodes.h"

namespace assay::autograd {

namespace {

using graph::Node;

bool is_view_operator(const Node& node) {
  if (node.calls("operator.getitem")) return true;
  const aten::OperatorRecord& record = aten::operator_record(node);
  return record.declares_view && record.view_of == 0;
}

bool is_end_of_chain(const Node& node, const Node& base) {
  return &node == &base || node.args().empty() || node.args()[0].node() == nullptr;
}

}  // namespace

std::shared_ptr<const graph::Graph> view_chain(const graph::Graph& graph, const Node& base,
                                               const Node& node) {
  std::vector<const Node*> chain;
  const Node* at = &node;
  while (!is_end_of_chain(*at, base) && is_view_operator(*at)) {
    chain.push_back(at);
    at = at->args()[0].node();
  }
  if (at != &base) return nullptr;
  auto made = std::make_shared<graph::Graph>("View");
  Node& input = made->placeholder("base");
  input.meta.value = base.meta.value;
  graph::NodeCopier copier(graph, *made);
  copier.replace(base, &input);
  for (const Node* step : chain | std::views::reverse) copier.copy(*step);
  made->set_output(copier.map().at(&node));
  return made;
}

}  // namespace assay::autograd
