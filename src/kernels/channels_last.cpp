#include "kernels/channels_last.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/pass_manager.h"
#include "kernels/image_regions.h"

namespace assay::kernels {

namespace {

using graph::Node;
using graph::TensorMeta;

std::vector<graph::SizeExpr> channels_last_strides(const std::vector<graph::SizeExpr>& sizes) {
  const std::int64_t channels = *sizes[1].constant();
  const std::int64_t width = *sizes[3].constant();
  const std::int64_t height = *sizes[2].constant();
  return {height * width * channels, 1, width * channels, channels};
}

class Reorderer {
 public:
  Reorderer(graph::Graph& graph, graph::PassContext& context) : graph_(graph), context_(context) {}

  void run() {
    // Before anything is changed, which they are judged by.
    const auto convolutions = convolutions_to_reorder(graph_);
    const auto is_in_order = [this](const Node& node) { return is_reordered(&node); };
    // New nodes are put before the one that is looked at.
    for (Node& node : graph_.nodes()) {
      if (convolutions.contains(&node) && context_.may_apply()) {
        reorder_convolution(node);
      } else if (takes_order(node, is_in_order)) {
        set_order(node);
      } else if (!reads_any_order(node)) {
        use_originals(node);
      }
    }
  }

 private:
  bool is_reordered(const Node* node) const { return node != nullptr && reordered_.contains(node); }

  void set_order(Node& node) {
    eager_meta_.emplace(&node, node.meta.value);
    const auto set = [](graph::ValueMeta& value) {
      if (auto* meta = std::get_if<TensorMeta>(&value.value)) {
        meta->strides = channels_last_strides(meta->sizes);
      }
    };
    if (auto* items = std::get_if<std::vector<graph::ValueMeta>>(&node.meta.value.value)) {
      std::ranges::for_each(*items, set);
    } else {
      set(node.meta.value);
    }
    reordered_.insert(&node);
  }

  void reorder_convolution(Node& node) {
    Node& input = *node.args()[0].node();
    if (!is_reordered(&input)) {
      Node*& copy = copies_[&input];
      if (copy == nullptr) {
        copy = &copied(node, input, c10::MemoryFormat::ChannelsLast);
        set_order(*copy);
      }
      replace(node, {{&input, copy}});
    }
    // Weights and biases that are computed in the graph.
    use_originals(node, node.args()[0].node());
    set_order(node);
  }

  // What the node reads is in eager's order, except `kept`.
  void use_originals(Node& node, const Node* kept = nullptr) {
    std::unordered_map<Node*, Node*> replacements;
    node.for_each_input([&](Node& input) {
      if (&input == kept || !is_reordered(&input) || replacements.contains(&input)) return;
      Node*& original = originals_[&input];
      if (original == nullptr) {
        original = &copied(node, input, c10::MemoryFormat::Contiguous);
        original->meta.value = eager_meta_.at(&input);
      }
      replacements.emplace(&input, original);
    });
    if (!replacements.empty()) replace(node, replacements);
  }

  Node& copied(Node& before, Node& input, c10::MemoryFormat format) {
    const graph::Graph::InsertBefore here(graph_, before);
    Node& copy = graph_.call_function("torch.ops.aten.clone.default", {graph::Argument(&input)},
                                      {{"memory_format", graph::Argument(format)}});
    copy.meta = input.meta;
    return copy;
  }

  static void replace(Node& node, const std::unordered_map<Node*, Node*>& replacements) {
    const auto translate = [&](Node& input) {
      const auto found = replacements.find(&input);
      return graph::Argument(found == replacements.end() ? &input : found->second);
    };
    std::vector<graph::Argument> args;
    for (const graph::Argument& argument : node.args()) {
      args.push_back(argument.map_nodes(translate));
    }
    std::vector<graph::NamedArgument> kwargs;
    for (const graph::NamedArgument& argument : node.kwargs()) {
      kwargs.push_back({argument.name, argument.value.map_nodes(translate)});
    }
    node.set_arguments(std::move(args), std::move(kwargs));
  }

  graph::Graph& graph_;
  graph::PassContext& context_;
  std::unordered_set<const Node*> reordered_;
  std::unordered_map<const Node*, graph::ValueMeta> eager_meta_;  // of the reordered ones
  std::unordered_map<const Node*, Node*> copies_;                 // of nodes in eager's order
  std::unordered_map<const Node*, Node*> originals_;              // of reordered nodes
};

void order_images(graph::Graph& graph, graph::PassContext& context) {
  Reorderer(graph, context).run();
}

const graph::RegisterPass registered_channels_last(
    {.name = "channels_last",
     .room = "kernels",
     .description = "orders images for convolutions, where nobody sees it",
     .rewrite = &order_images});

}  // namespace

bool gains_by_channels_last(const graph::Graph& graph) {
  return !convolutions_to_reorder(graph).empty();
}

}  // namespace assay::kernels
