// Puts the body of a subgraph in the place of the call that runs it: invoke_subgraph,
// wrap_with_set_grad_enabled, and one or the other branch of cond.
#include <algorithm>
#include <set>

#include "graph/copy_nodes.h"
#include "graph/rewrite.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;

struct Inlining {
  const Node* call = nullptr;
  const Graph* body = nullptr;
  std::vector<Argument> operands = {};
};

const Graph* subgraph_of(const Graph& graph, const Argument& argument) {
  const Node* node = argument.node();
  if (node == nullptr || node->op() != graph::Op::get_attr) return nullptr;
  const graph::Attribute* attribute = graph.attribute(node->target().name());
  return attribute == nullptr ? nullptr : attribute->subgraph();
}

std::vector<Inlining> all_inlinings(const Graph& graph) {
  std::vector<Inlining> found;
  for (const Node& node : graph.nodes()) {
    const auto& args = node.args();
    const auto add = [&](std::size_t subgraph, std::vector<Argument> operands) {
      const Graph* body = subgraph_of(graph, args[subgraph]);
      const bool fits = body != nullptr && body->output() != nullptr &&
                        body->placeholders().size() == operands.size();
      if (fits) found.push_back({&node, body, std::move(operands)});
    };
    const auto rest = [&] { return std::vector<Argument>(args.begin() + 2, args.end()); };
    if (node.calls("torch.ops.higher_order.invoke_subgraph") && args.size() >= 2) add(0, rest());
    if (node.calls("torch.ops.higher_order.wrap_with_set_grad_enabled") && args.size() >= 2) {
      add(1, rest());
    }
    if (node.calls("torch.ops.higher_order.cond") && args.size() == 4) {
      add(1, args[3].items());
      add(2, args[3].items());
    }
  }
  return found;
}

// Copies the body before `call` and returns what it returns.
Argument copy_body(Graph& graph, Node& call, const Graph& body,
                   const std::vector<Argument>& operands) {
  const Graph::InsertBefore before(graph, call);
  // Attributes of the body become the graph's own, under a name that is free.
  graph::NodeCopier copier(body, graph, call.name() + "_");
  std::size_t next_operand = 0;
  for (const Node& node : body.nodes()) {
    if (node.op() == graph::Op::placeholder) {
      copier.replace(node, operands[next_operand++]);
    } else if (node.op() == graph::Op::output) {
      return copier.translate(node.args()[0]);
    } else {
      copier.copy(node);
    }
  }
  return {};
}

bool lacks_attribute(const Graph& body) {
  return std::ranges::any_of(body.nodes(), [&](const Node& node) {
    const bool reads_attribute =
        node.op() == graph::Op::get_attr || node.op() == graph::Op::call_module;
    return reads_attribute && body.attribute(node.target().name()) == nullptr;
  });
}

// Whoever took an item of the call takes that of the body's results.
void replace_call(Node& call, const Argument& results) {
  const std::vector<Node*>& users = call.users();
  for (Node* user : std::set<Node*>(users.begin(), users.end())) {
    if (!user->calls("operator.getitem")) continue;
    const auto* index = user->args()[1].get_if<std::int64_t>();
    const auto& items = results.items();
    if (index != nullptr && *index >= 0 && *index < std::ssize(items)) {
      graph::replace_uses(*user, items[static_cast<std::size_t>(*index)]);
    }
  }
}

std::optional<Candidate> propose_subgraphs(const Candidate& program, std::size_t, std::size_t index,
                                           repro::ContentStore&) {
  const Inlining inlining = all_inlinings(*program.graph)[index];
  if (lacks_attribute(*inlining.body)) return std::nullopt;
  Edit edit(program);
  const auto own = [&](Node& node) -> Argument { return &edit.node(node); };
  std::vector<Argument> operands;
  for (const Argument& operand : inlining.operands) operands.push_back(operand.map_nodes(own));
  Node& call = edit.node(*inlining.call);
  const Argument results = copy_body(edit.graph(), call, *inlining.body, operands);
  replace_call(call, results);
  erase_unused(edit.graph());
  if (edit.graph().find(inlining.call->name()) != nullptr) return std::nullopt;  // still in use
  return edit.finish(false);
}

}  // namespace

Proposals passes::subgraphs() {
  return {
      &one_round,
      [](const Candidate& program, std::size_t) { return all_inlinings(*program.graph).size(); },
      &propose_subgraphs};
}

}  // namespace assay::reduce
