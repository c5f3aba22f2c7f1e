// Attention over short sequences as two batches of products with a softmax between them, where
// oneDNN multiplies (`prefers_onednn`). ATen's flash attention multiplies block by block with BLAS;
// it stays for long sequences, whose scores do not fit into the caches, for masks, for dropout, and
// in training, whose backward needs what it saves.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "graph/pass_manager.h"
#include "kernels/call_builder.h"
#include "kernels/matmul.h"
#include "kernels/tensor_ref.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;
using graph::Argument;
using graph::Node;

// Scores of one head that stay in a core's cache while they are computed, normalized and used.
constexpr std::int64_t kMostScores = std::int64_t{256} * 256;

struct Attention {
  Sizes query;  ///< batch, heads, length, depth
  Sizes keys;   ///< The same of keys and of values.
  Sizes result_strides;
  bool is_causal = false;
  double scale = 1;
};

const Argument* argument(const Node& node, std::size_t position, std::string_view name) {
  if (position < node.args().size()) return &node.args()[position];
  const auto found = std::ranges::find(node.kwargs(), name, &graph::NamedArgument::name);
  return found == node.kwargs().end() ? nullptr : &found->value;
}

// Positions are those of the schema; the last two are given by name only.
bool has_mask_or_dropout(const Node& node) {
  const Argument* dropout = argument(node, 3, "dropout_p");
  const Argument* mask = argument(node, 5, "attn_mask");
  if (mask != nullptr && !mask->is_none()) return true;
  if (dropout == nullptr) return false;
  const auto* probability = dropout->get_if<double>();
  return probability == nullptr || *probability != 0;
}

// The one that gives the attention's result; nothing if anything else is used.
Node* only_result(const Node& node) {
  if (node.users().size() != 1) return nullptr;
  Node* user = node.users()[0];
  if (!user->calls("operator.getitem")) return nullptr;
  const auto* item = user->args()[1].get_if<std::int64_t>();
  return item != nullptr && *item == 0 ? user : nullptr;
}

std::optional<Sizes> float_sizes(const Argument& argument) {
  const Node* node = argument.node();
  const graph::TensorMeta* meta = node == nullptr ? nullptr : node->meta.value.tensor();
  if (meta == nullptr || meta->dtype != ScalarType::Float || !meta->device.is_cpu()) {
    return std::nullopt;
  }
  auto layout = layout_of(*meta);
  if (!layout || layout->sizes.size() != 4) return std::nullopt;
  return std::move(layout->sizes);
}

std::optional<Attention> attention_of(const Node& node) {
  if (!node.calls("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default") ||
      node.args().size() < 3 || has_mask_or_dropout(node) || only_result(node) == nullptr) {
    return std::nullopt;
  }
  const auto query = float_sizes(node.args()[0]);
  const auto keys = float_sizes(node.args()[1]);
  const auto values = float_sizes(node.args()[2]);
  const graph::TensorMeta* meta = only_result(node)->meta.value.tensor();
  const auto result = meta == nullptr ? std::nullopt : layout_of(*meta);
  if (!query || !keys || !values || !result || *keys != *values || (*query)[1] != (*keys)[1]) {
    return std::nullopt;
  }
  Attention found{.query = *query, .keys = *keys, .result_strides = result->strides};
  const Argument* causal = argument(node, 4, "is_causal");
  const bool* is_causal = causal == nullptr ? nullptr : causal->get_if<bool>();
  found.is_causal = is_causal != nullptr && *is_causal;
  found.scale = 1 / std::sqrt(static_cast<double>((*query)[3]));
  if (const Argument* scale = argument(node, 6, "scale"); scale != nullptr && !scale->is_none()) {
    const auto* number = scale->get_if<double>();
    if (number == nullptr) return std::nullopt;
    found.scale = *number;
  }
  // A row of scores must not be masked altogether.
  if (found.is_causal && (*query)[2] != (*keys)[2]) return std::nullopt;
  if ((*query)[2] * (*keys)[2] > kMostScores) return std::nullopt;
  const std::int64_t batch = (*query)[0] * (*query)[1];
  const TensorRef left = row_major(ScalarType::Float, {batch, (*query)[2], (*query)[3]});
  const TensorRef right = row_major(ScalarType::Float, {batch, (*keys)[2], (*keys)[3]});
  if (!prefers_onednn(left, permuted(right, {0, 2, 1}))) return std::nullopt;
  return found;
}

class Rewriter {
 public:
  Rewriter(graph::Graph& graph, Node& node, const Attention& attention)
      : builder_(graph, node),
        node_(node),
        attention_(attention),
        batch_(attention.query[0] * attention.query[1]),
        length_(attention.query[2]),
        keys_(attention.keys[2]),
        depth_(attention.query[3]) {}

  void run() {
    Node& query = packed(node_.args()[0], attention_.query, length_);
    Node& key = packed(node_.args()[1], attention_.keys, keys_);
    Node& value = packed(node_.args()[2], attention_.keys, keys_);
    Node& turned = builder_.call("permute", {&key, list_of({0, 2, 1})},
                                 permuted(floats({batch_, keys_, depth_}), {0, 2, 1}));
    const TensorRef scores = floats({batch_, length_, keys_});
    Node& products = builder_.call("bmm", {&query, &turned}, scores);
    Node& scaled = masked(builder_.call("mul.Scalar", {&products, attention_.scale}, scores));
    const TensorRef row = floats({batch_, length_, 1});
    const Argument last = list_of({-1});
    Node& largest = builder_.call("amax", {&scaled, last, true}, row);
    Node& differences = builder_.call("sub.Tensor", {&scaled, &largest}, scores);
    Node& weights = builder_.call("exp", {&differences}, scores);
    Node& total = builder_.call("sum.dim_IntList", {&weights, last, true}, row);
    const TensorRef results = floats({batch_, length_, depth_});
    Node& sums = builder_.call("bmm", {&weights, &value}, results);
    Node& means = builder_.call("div.Tensor", {&sums, &total}, results);
    Node& images =
        builder_.call("view", {&means, list_of(attention_.query)}, floats(attention_.query));
    // In the order of the elements that ATen's result has.
    Node& result = *only_result(node_);
    result.set_target("torch.ops.aten.clone.default");
    result.set_arguments({&images});
  }

 private:
  static TensorRef floats(Sizes sizes) { return row_major(ScalarType::Float, std::move(sizes)); }

  // Heads as a batch of row-major matrices.
  Node& packed(const Argument& tensor, const Sizes& sizes, std::int64_t length) {
    Node& copy = builder_.call("clone", {tensor}, floats(sizes),
                               {{"memory_format", Argument(c10::MemoryFormat::Contiguous)}});
    return builder_.call("view", {&copy, list_of({batch_, length, depth_})},
                         floats({batch_, length, depth_}));
  }

  Node& masked(Node& scores) {
    if (!attention_.is_causal) return scores;
    const TensorRef mask = row_major(ScalarType::Bool, {length_, keys_});
    Node& all = builder_.call("full", {list_of(mask.sizes), true}, mask,
                              {{"dtype", Argument(ScalarType::Bool)}});
    Node& seen = builder_.call("tril", {&all}, mask);
    Node& never = builder_.call("full", {list_of({}), -std::numeric_limits<double>::infinity()},
                                floats({}), {{"dtype", Argument(ScalarType::Float)}});
    return builder_.call("where.self", {&seen, &scores, &never}, floats({batch_, length_, keys_}));
  }

  CallBuilder builder_;
  Node& node_;
  const Attention& attention_;
  std::int64_t batch_, length_, keys_, depth_;
};

void multiply_attention(graph::Graph& graph, graph::PassContext& context) {
  std::vector<Node*> replaced;
  for (Node& node : graph.nodes()) {
    const auto attention = attention_of(node);
    if (!attention || !context.may_apply()) continue;
    Rewriter(graph, node, *attention).run();
    replaced.push_back(&node);
  }
  for (Node* node : replaced) graph.erase(*node);
}

const graph::RegisterPass registered_attention(
    {.name = "products_of_attention",
     .room = "kernels",
     .description = "multiplies matrices for attention over short sequences",
     .rewrite = &multiply_attention});

}  // namespace

bool gains_by_products_of_attention(const graph::Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const Node& node) { return attention_of(node).has_value(); });
}

}  // namespace assay::kernels
