// The network: a value that depends on no tangent is a pipe from `in` to `out` as wide as its
// bytes. Cutting the pipe means to save the value. `in` on the source's side means that forward
// computes it, `in` on the sink's side that backward does. The source feeds what only forward has,
// the sink drinks what backward uses, and pipes between values are never cut.
#include <algorithm>

#include "assay/error.h"
#include "autograd/flow_network.h"
#include "autograd/joint_parts.h"
#include "autograd/operator_kinds.h"
#include "autograd/partitioners.h"
#include "autograd/recompute_bans.h"
#include "autograd/saved_values.h"
#include "autograd/split.h"
#include "graph/pass_manager.h"

namespace assay::autograd {

using graph::Node;

namespace {

class CutFinder {
 public:
  explicit CutFinder(const JointParts& parts)
      : parts_(parts), banned_(recompute_bans(parts)), network_(0) {
    std::uint64_t total = 0;
    for (const Node& node : parts.joint.nodes()) {
      const Place place = parts.place(node);
      if (place != Place::forward && place != Place::either) continue;
      index_.emplace(&node, values_.size());
      values_.push_back(&node);
      if (may_be_saved(node)) total += std::min(value_bytes(node), kMostBytes);
    }
    for (const auto& output : parts.forward_outputs) {
      output.for_each_node([&](const Node& node) { held_.insert(&base_of(node)); });
    }
    // Wide enough that all the preferences together weigh less than one byte.
    const std::uint64_t room = static_cast<std::uint64_t>(FlowNetwork::kUnlimited) / 2;
    scale_ = std::clamp<std::uint64_t>(room / (total + 1), 1, 2 * values_.size() + 1);
    network_ = FlowNetwork(2 + 2 * values_.size());
  }

  std::unordered_set<const Node*> find() {
    for (const Node* node : values_) add_value(*node);
    keep_expensive_calls_single();
    const auto is_sink_side = network_.sink_side();
    if (!is_sink_side) {
      throw UserError(
          "the joint graph cannot be split: backward needs a value of forward that can "
          "neither be saved (it is no tensor) nor computed again");
    }
    std::unordered_set<const Node*> saved;
    for (const Node* node : values_) {
      if (!(*is_sink_side)[in(*node)] && (*is_sink_side)[out(*node)]) saved.insert(node);
    }
    return saved;
  }

 private:
  // Far beyond any machine, and still safe to add up.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 45;

  std::size_t in(const Node& node) const { return 2 + 2 * index_.at(&node); }
  std::size_t out(const Node& node) const { return in(node) + 1; }

  bool is_view(const Node& node) const {
    return node.is_call() && kind_of(node) == OperatorKind::view;
  }

  bool may_be_saved(const Node& node) const {
    if (is_repeatable_attribute(parts_.joint, node) || !is_savable(node)) return false;
    return !is_view(node) || narrows(node);
  }

  // A view of a part (the first token's state) may stand for its base if backward uses nothing else
  // of it; the cut never takes both. A primal's part is not worth a value of its own.
  bool narrows(const Node& view) const {
    const Node& base = base_of(view);
    return base.is_call() && is_savable(base) && value_bytes(view) < value_bytes(base);
  }

  void add_value(const Node& node) {
    const bool is_given = !node.is_call() && !is_repeatable_attribute(parts_.joint, node);
    if (is_given || banned_.contains(&node)) {
      network_.add_pipe(FlowNetwork::source, in(node), FlowNetwork::kUnlimited);
    }
    network_.add_pipe(in(node), out(node),
                      may_be_saved(node) ? cost(node) : FlowNetwork::kUnlimited);
    bool is_used_by_backward = parts_.is_gradient(node);
    std::unordered_set<const Node*> seen;
    for (const Node* user : node.users()) {
      if (!seen.insert(user).second) continue;
      if (parts_.place(*user) == Place::backward) is_used_by_backward = true;
      if (index_.contains(user)) {
        network_.add_pipe(out(node), in(*user), FlowNetwork::kUnlimited);
      }
    }
    if (is_used_by_backward) {
      network_.add_pipe(out(node), FlowNetwork::sink, FlowNetwork::kUnlimited);
    }
  }

  // Bytes first. Then values that somebody holds anyway, then those that forward writes to memory
  // anyway, then those that it would otherwise keep in registers.
  FlowNetwork::Capacity cost(const Node& node) const {
    std::uint64_t preference = is_written_by_forward(node) ? 1 : 2;
    if (!node.is_call() || held_.contains(&node)) preference = 0;
    const std::uint64_t bytes = std::min(value_bytes(node), kMostBytes);
    return static_cast<FlowNetwork::Capacity>(bytes * scale_ + preference);
  }

  bool is_written_by_forward(const Node& node) const {
    if (!fuses_with_inputs(node)) return true;
    std::vector<const Node*> open = {&node};
    while (!open.empty()) {
      const Node* value = open.back();
      open.pop_back();
      for (const Node* user : value->users()) {
        if (parts_.place(*user) != Place::forward) continue;
        if (!fuses_with_inputs(*user)) return true;
        if (is_view(*user)) open.push_back(user);
      }
    }
    return false;
  }

  // An expensive call that only gradients use runs once, in forward or in backward. If forward ran
  // something that is made of it, and backward ran it too, it would run twice: so what is made of
  // it draws it along to forward.
  void keep_expensive_calls_single() {
    std::unordered_set<const Node*> made_of_expensive;
    for (const Node* node : values_) {
      if (parts_.place(*node) != Place::either) continue;
      node->for_each_input([&](const Node& input) {
        if (!made_of_expensive.contains(&input)) return;
        made_of_expensive.insert(node);
        network_.add_pipe(in(*node), in(input), FlowNetwork::kUnlimited);
      });
      if (node->is_call() && kind_of(*node) == OperatorKind::expensive) {
        made_of_expensive.insert(node);
      }
    }
  }

  const JointParts& parts_;
  std::unordered_set<const Node*> banned_;
  std::unordered_set<const Node*> held_;  // bases of forward outputs
  std::vector<const Node*> values_;       // what depends on no tangent, in order
  std::unordered_map<const Node*, std::size_t> index_;
  std::uint64_t scale_ = 1;
  FlowNetwork network_;
};

const graph::RegisterPass partition_min_cut_pass(
    {.name = "partition_min_cut",
     .room = "autograd",
     .description = "splits a joint graph, saving the fewest bytes without redoing expensive calls",
     .is_required = true});

}  // namespace

Partition save_fewest_bytes(const graph::Graph& joint, std::size_t forward_outputs) {
  const JointParts parts(joint, forward_outputs);
  return split(parts, CutFinder(parts).find());
}

}  // namespace assay::autograd
