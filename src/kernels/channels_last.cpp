#include "kernels/channels_last.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "aten/operator_record.h"
#include "graph/pass_manager.h"
#include "kernels/lower.h"
#include "kernels/tensor_ref.h"

namespace assay::kernels {

namespace {

using graph::Node;
using graph::TensorMeta;

// A single convolution gains less than the copies around it cost.
constexpr int kFewestConvolutions = 2;
// ATen computes smaller ones itself, and best in its own order.
constexpr std::int64_t kSmallestWork = 200000;
// oneDNN reorders the weights at every call; with more of them per result this takes too long.
constexpr std::int64_t kMostWeightsPerResult = 4;

// Operators besides pointwise ones that give the order of their input to their result.
constexpr std::array<std::string_view, 4> kFollowers = {
    "torch.ops.aten.avg_pool2d.default",
    "torch.ops.aten.max_pool2d_with_indices.default",
    "torch.ops.aten.upsample_bilinear2d.default",
    "torch.ops.aten.upsample_nearest2d.default",
};

// Of an image batch in row-major order with more than one channel and more than one pixel: only
// then there are two orders.
std::optional<Sizes> image_sizes(const TensorMeta* meta) {
  if (meta == nullptr || !meta->device.is_cpu() || meta->sizes.size() != 4) return std::nullopt;
  auto layout = layout_of(*meta);
  if (!layout || layout->strides != row_major_strides(layout->sizes)) return std::nullopt;
  const Sizes& sizes = layout->sizes;
  if (sizes[0] == 0 || sizes[1] < 2 || sizes[2] * sizes[3] < 2) return std::nullopt;
  return sizes;
}

bool gains(const Node& node) {
  if (!node.calls("torch.ops.aten.convolution.default") || node.args().size() != 9) return false;
  const Node* input = node.args()[0].node();
  const Node* weight = node.args()[1].node();
  const bool* is_transposed = node.args()[6].get_if<bool>();
  if (input == nullptr || weight == nullptr || is_transposed == nullptr || *is_transposed) {
    return false;
  }
  const TensorMeta* weight_meta = weight->meta.value.tensor();
  const auto result = image_sizes(node.meta.value.tensor());
  if (!result || !image_sizes(input->meta.value.tensor()) || weight_meta == nullptr ||
      weight_meta->dtype != c10::ScalarType::Float) {
    return false;
  }
  const auto weights = layout_of(*weight_meta);
  if (!weights) return false;
  const std::int64_t results = element_count(*result);
  const std::int64_t work = results * element_count(weights->sizes) / (*result)[1];
  return work >= kSmallestWork && element_count(weights->sizes) <= kMostWeightsPerResult * results;
}

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
    std::unordered_set<const Node*> convolutions;
    for (const Node& node : graph_.nodes()) {
      if (gains(node)) convolutions.insert(&node);
    }
    // New nodes are put before the one that is looked at.
    for (Node& node : graph_.nodes()) {
      if (convolutions.contains(&node) && context_.may_apply()) {
        reorder_convolution(node);
      } else if (follows(node)) {
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

  // Whether a node's result takes the order of what it reads.
  bool follows(const Node& node) const {
    if (!node.is_call() || node.args().empty()) return false;
    if (node.calls("operator.getitem")) return is_reordered(node.args()[0].node());
    const bool is_listed = std::ranges::find(kFollowers, node.target().name()) != kFollowers.end();
    if (!is_listed && !is_pointwise(node)) return false;
    if (!has_images(node.meta.value)) return false;
    if (is_listed) return is_reordered(node.args()[0].node());
    bool reads = false;
    bool is_same = true;
    node.for_each_input([&](const Node& input) {
      if (!is_reordered(&input)) return;
      reads = true;
      const TensorMeta* meta = input.meta.value.tensor();
      is_same = is_same && meta != nullptr && meta->sizes == node.meta.value.tensor()->sizes;
    });
    return reads && is_same;
  }

  static bool has_images(const graph::ValueMeta& value) {
    if (const auto* items = std::get_if<std::vector<graph::ValueMeta>>(&value.value)) {
      return std::ranges::all_of(*items, [](const graph::ValueMeta& item) {
        return image_sizes(item.tensor()).has_value();
      });
    }
    return image_sizes(value.tensor()).has_value();
  }

  static bool is_pointwise(const Node& node) {
    const aten::OperatorRecord& record = aten::operator_record(node);
    return record.is_pure && record.work == aten::Work::pointwise &&
           record.view == aten::View::never && node.meta.value.tensor() != nullptr &&
           has_lowering(node);
  }

  // Kernels read by strides, whatever they are.
  static bool reads_any_order(const Node& node) {
    return node.op() == graph::Op::call_function &&
           aten::operator_record(node).view == aten::View::never && has_lowering(node);
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
  return std::ranges::count_if(graph.nodes(), gains) >= kFewestConvolutions;
}

}  // namespace assay::kernels
