#include "assay/error.h"
#include "autograd/joint_parts.h"
#include "autograd/operator_kinds.h"
#include "autograd/partitioners.h"
#include "autograd/saved_values.h"
#include "autograd/split.h"
#include "graph/pass_manager.h"

namespace assay::autograd {

using graph::Node;

Partition save_what_backward_uses(const graph::Graph& joint, std::size_t forward_outputs) {
  const JointParts parts(joint, forward_outputs);
  std::unordered_set<const Node*> saved;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> wanted;
  const auto want = [&](const Node& node) {
    if (parts.place(node) == Place::forward) wanted.push_back(&node);
  };
  for (const Node& node : joint.nodes()) {
    const Place place = parts.place(node);
    if (place == Place::either || place == Place::backward) node.for_each_input(want);
    if (parts.is_gradient(node)) want(node);
  }
  while (!wanted.empty()) {
    const Node* node = wanted.back();
    wanted.pop_back();
    if (!seen.insert(node).second || is_repeatable_attribute(joint, *node)) continue;
    const bool is_view = node->is_call() && kind_of(*node) == OperatorKind::view;
    if (!is_view && is_savable(*node)) {
      saved.insert(node);
    } else if (node->is_call() && must_run(*node)) {
      throw UserError("backward uses '" + node->name() +
                      "', which can neither be saved (it is no tensor) nor computed again");
    } else {
      node->for_each_input(want);  // views, tuples and floats are made again
    }
  }
  return split(parts, saved);
}

namespace {

const graph::RegisterPass partition_default_pass(
    {.name = "partition_default",
     .room = "autograd",
     .description = "splits a joint graph, saving what backward uses",
     .is_required = true});

}  // namespace

}  // namespace assay::autograd
