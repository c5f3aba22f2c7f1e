#include "autograd/recompute_bans.h"

#include <algorithm>

#include "autograd/operator_kinds.h"
#include "autograd/partition.h"
#include "autograd/saved_values.h"

namespace assay::autograd {

using graph::Node;
using graph::Op;

namespace {

constexpr std::uint64_t kSmallBeside = 4;
constexpr int kLongestChain = 100;

bool is_tensor(const Node& node) { return node.meta.value.tensor() != nullptr; }

bool is_cheap(OperatorKind kind) {
  return kind == OperatorKind::view || kind == OperatorKind::item ||
         kind == OperatorKind::pointwise || kind == OperatorKind::gather ||
         kind == OperatorKind::reduction;
}

bool is_small_beside_inputs(const Node& node) {
  std::uint64_t read = 0;
  node.for_each_input([&](const Node& input) { read += value_bytes(input); });
  return value_bytes(node) < read / kSmallBeside;
}

class BanFinder {
 public:
  explicit BanFinder(const JointParts& parts) : parts_(parts) {
    for (const Node& node : parts.joint.nodes()) {
      position_.emplace(&node, position_.size());
      int depth = 0;
      node.for_each_input([&](const Node& input) { depth = std::max(depth, depth_.at(&input)); });
      depth_.emplace(&node, fuses_with_inputs(node) ? depth : depth + 1);
    }
  }

  std::unordered_set<const Node*> find() {
    std::unordered_set<const Node*> banned;
    std::unordered_map<const Node*, int> chain;  // calls to recompute, one after the other
    for (const Node& node : parts_.joint.nodes()) {
      if (!node.is_call() || parts_.place(node) != Place::forward) continue;
      int length = 0;
      node.for_each_input([&](const Node& input) {
        const auto found = chain.find(&input);
        if (found != chain.end()) length = std::max(length, found->second);
      });
      const OperatorKind kind = kind_of(node);
      if (kind != OperatorKind::view && kind != OperatorKind::item) ++length;
      if (is_banned(node, kind) || length > kLongestChain) {
        banned.insert(&node);
        length = 0;
      }
      chain.emplace(&node, length);
    }
    return banned;
  }

 private:
  bool is_banned(const Node& node, OperatorKind kind) const {
    if (!is_cheap(kind)) return true;
    if (kind == OperatorKind::view || kind == OperatorKind::item) return false;
    if (!is_tensor(node) && node.meta.value.known()) {
      const bool is_integer = std::holds_alternative<graph::SizeExpr>(node.meta.value.value);
      if (is_integer) return false;
    }
    if (kind != OperatorKind::gather && is_small_beside_inputs(node)) return true;
    return backward_materializes(node) || joins_across_expensive(node);
  }

  bool backward_materializes(const Node& node) const {
    std::vector<const Node*> open = {&node};
    while (!open.empty()) {
      const Node* value = open.back();
      open.pop_back();
      if (parts_.is_gradient(*value)) return true;
      for (const Node* user : value->users()) {
        const Place place = parts_.place(*user);
        if (place == Place::dead || user->op() == Op::output) continue;
        if (place != Place::forward && !fuses_with_inputs(*user)) return true;
        const OperatorKind kind = kind_of(*user);
        if (kind == OperatorKind::view || kind == OperatorKind::item) open.push_back(user);
      }
    }
    return false;
  }

  // Whether one of the node's inputs also reaches it through an expensive call.
  bool joins_across_expensive(const Node& node) const {
    bool found = false;
    node.for_each_input([&](const Node& input) {
      const Node& base = base_of(input);
      // What cheap calls make of primals (a mask) can be had anywhere.
      if (!base.is_call() || depth_.at(&base) == 0) return;
      if (depth_.at(&base) < depth_.at(&node)) found = found || reaches(base, node);
    });
    return found;
  }

  // Whether a path leads from `start` to `end` by way of an expensive call.
  bool reaches(const Node& start, const Node& end) const {
    std::vector<std::pair<const Node*, bool>> open;
    std::unordered_set<const Node*> seen[2];
    const auto visit_inputs = [&](const Node& node, bool is_after_expensive) {
      node.for_each_input([&](const Node& input) {
        if (position_.at(&input) < position_.at(&start)) return;
        if (seen[is_after_expensive].insert(&input).second) {
          open.emplace_back(&input, is_after_expensive);
        }
      });
    };
    visit_inputs(end, false);
    while (!open.empty()) {
      const auto [node, was_after] = open.back();
      open.pop_back();
      if (node == &start) {
        if (was_after) return true;
        continue;
      }
      visit_inputs(*node, was_after || !fuses_with_inputs(*node));
    }
    return false;
  }

  const JointParts& parts_;
  std::unordered_map<const Node*, std::size_t> position_;
  std::unordered_map<const Node*, int> depth_;  // expensive calls on the longest way to the node
};

}  // namespace

std::unordered_set<const Node*> recompute_bans(const JointParts& parts) {
  return BanFinder(parts).find();
}

}  // namespace assay::autograd
