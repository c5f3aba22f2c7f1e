#include "autograd/origins.h"

namespace assay::autograd {

void Origins::stamp(graph::Node& node, const graph::Node& origin) const {
  node.meta.stack = origin.meta.stack;
  node.meta.provenance = {stage_, {origin.id()}};
}

void Origins::add(graph::Node& node, std::int64_t sequence_number) {
  if (sequence_number < 0) {
    pending_.push_back(&node);
    return;
  }
  const auto found = by_sequence_.upper_bound(static_cast<std::uint64_t>(sequence_number));
  if (found != by_sequence_.end()) stamp(node, *found->second);
}

void Origins::finish(const graph::Node& origin, std::uint64_t next_sequence_number) {
  for (graph::Node* node : pending_) stamp(*node, origin);
  pending_.clear();
  // A node that made no autograd node has no numbers of its own.
  by_sequence_.try_emplace(next_sequence_number, &origin);
}

}  // namespace assay::autograd
