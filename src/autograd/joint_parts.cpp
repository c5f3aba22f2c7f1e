#include "autograd/joint_parts.h"

#include "assay/error.h"
#include "autograd/extract.h"
#include "autograd/operator_kinds.h"

namespace assay::autograd {

using graph::Argument;
using graph::Node;
using graph::Op;

namespace {

bool is_tangent(const Node& node) { return node.meta.role == graph::InputRole::tangent; }

}  // namespace

JointParts::JointParts(const graph::Graph& joint_graph, std::size_t forward_output_count)
    : joint(joint_graph) {
  read_signature(forward_output_count);
  find_places();
}

Place JointParts::place(const Node& node) const {
  const auto found = places.find(&node);
  return found == places.end() ? Place::dead : found->second;
}

void JointParts::read_signature(std::size_t forward_output_count) {
  for (const Node* node : joint.placeholders()) {
    (is_tangent(*node) ? tangents : primals).push_back(node);
  }
  if (joint.output() == nullptr || joint.output()->args().size() != 1) {
    throw UserError("a joint graph must have an output");
  }
  const Argument& returned = joint.output()->args()[0];
  if (returned.get_if<graph::List>() == nullptr && returned.get_if<graph::Tuple>() == nullptr) {
    throw UserError("a joint graph must return a list or tuple: forward outputs, then gradients");
  }
  const std::vector<Argument>& outputs = returned.items();
  if (forward_output_count > outputs.size()) {
    throw UserError("the joint graph has " + std::to_string(outputs.size()) +
                    " outputs, fewer than its " + std::to_string(forward_output_count) +
                    " forward outputs");
  }
  const auto middle = outputs.begin() + static_cast<std::ptrdiff_t>(forward_output_count);
  forward_outputs.assign(outputs.begin(), middle);
  gradients.assign(middle, outputs.end());
  for (const Argument& gradient : gradients) {
    gradient.for_each_node([&](const Node& node) { gradient_nodes.insert(&node); });
  }
}

// Forward has these without doing more: primals, and items of calls that it makes anyway.
bool JointParts::comes_with_forward(const Node& node) const {
  if (node.op() == Op::placeholder) return !is_tangent(node);
  if (!node.is_call() || kind_of(node) != OperatorKind::item) return false;
  const Node* source = node.args()[0].node();
  return source != nullptr && place(*source) == Place::forward;
}

void JointParts::find_places() {
  std::unordered_set<const Node*> after_tangent(tangents.begin(), tangents.end());
  for (const Node& node : joint.nodes()) {
    if (node.op() == Op::output) continue;
    node.for_each_input([&](const Node& input) {
      if (after_tangent.contains(&input)) after_tangent.insert(&node);
    });
    if (!node.is_call() || !must_run(node)) continue;
    (after_tangent.contains(&node) ? kept_in_backward : kept_in_forward).push_back(&node);
  }
  const auto in_forward = needed_nodes({"", {}, forward_outputs, kept_in_forward, {}});
  const auto in_backward = needed_nodes({"", {}, gradients, kept_in_backward, {}});
  for (const Node& node : joint.nodes()) {
    const bool is_for_backward = in_backward.contains(&node);
    if (in_forward.contains(&node) || (is_for_backward && comes_with_forward(node))) {
      if (after_tangent.contains(&node)) {
        throw UserError("forward outputs of the joint graph depend on a tangent, by way of '" +
                            node.name() + "'",
                        "is the number of forward outputs right?");
      }
      places.emplace(&node, Place::forward);
    } else if (is_for_backward) {
      places.emplace(&node, after_tangent.contains(&node) ? Place::backward : Place::either);
    }
  }
}

}  // namespace assay::autograd
