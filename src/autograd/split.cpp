#include "autograd/split.h"

#include "autograd/extract.h"
#include "autograd/saved_values.h"

namespace assay::autograd {

using graph::Argument;
using graph::Node;

Partition split(const JointParts& parts, const std::unordered_set<const Node*>& saved) {
  Extraction backward{"Backward", {}, parts.gradients, parts.kept_in_backward, {}};
  backward.inputs.assign(saved.begin(), saved.end());
  const auto used = needed_nodes(backward);
  std::vector<const Node*> handed_over;
  for (const Node& node : parts.joint.nodes()) {
    if (saved.contains(&node) && used.contains(&node)) handed_over.push_back(&node);
  }
  backward.inputs = handed_over;
  backward.inputs.insert(backward.inputs.end(), parts.tangents.begin(), parts.tangents.end());
  backward.is_placed_late = [&](const Node& node) { return parts.place(node) != Place::backward; };

  Extraction forward{"Forward", parts.primals, parts.forward_outputs, parts.kept_in_forward, {}};
  std::unordered_set<const Node*> held(parts.primals.begin(), parts.primals.end());
  for (const Argument& output : parts.forward_outputs) {
    output.for_each_node([&](const Node& node) { held.insert(&base_of(node)); });
  }
  Partition result;
  for (const Node* node : handed_over) {
    // Node pointers in arguments are mutable, though nobody changes the joint graph through them.
    forward.outputs.emplace_back(const_cast<Node*>(node));  // NOLINT(*-const-cast)
    result.saved.push_back(node->name());
    const std::uint64_t bytes = value_bytes(*node);
    result.saved_bytes += bytes;
    // A view keeps all of its base alive; two views of one base do so once.
    const Node& base = base_of(*node);
    if (held.insert(&base).second) result.saved_bytes_new += value_bytes(base);
  }
  result.forward = extract(parts.joint, forward);
  result.backward = extract(parts.joint, backward);
  return result;
}

}  // namespace assay::autograd
