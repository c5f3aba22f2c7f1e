#include "autograd/view_chain.h"

#include <ranges>
#include <vector>

#include "aten/operator_record.h"

namespace assay::autograd {

namespace {

using graph::Argument;
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

std::shared_ptr<const graph::Graph> view_chain(const Node& base, const Node& node) {
  std::vector<const Node*> chain;
  const Node* at = &node;
  while (!is_end_of_chain(*at, base) && is_view_operator(*at)) {
    chain.push_back(at);
    at = at->args()[0].node();
  }
  if (at != &base) return nullptr;
  auto made = std::make_shared<graph::Graph>("View");
  Node* current = &made->placeholder("base");
  current->meta.value = base.meta.value;
  for (const Node* step : chain | std::views::reverse) {
    std::vector<Argument> arguments = step->args();
    arguments[0] = current;
    current = &made->call_function(step->target(), std::move(arguments), step->kwargs());
    current->meta = step->meta;
  }
  made->set_output(current);
  return made;
}

}  // namespace assay::autograd
