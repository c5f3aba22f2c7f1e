// Attention over short sequences as two batches of products with a softmax between them, where
// oneDNN multiplies (`prefers_onednn`). ATen's flash attention multiplies block by block with BLAS;
// it stays for long sequences, whose scores do not fit into the caches, for dropout, and in
// training, whose backward needs what it saves.
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Scores of one head that stay in a core's cache while they are computed, normalized and used.
constexpr std::int64_t kMostScores = std::int64_t{256} * 256;

struct Attention {
  Sizes query;  ///< batch, heads, length, depth
  Sizes keys;   ///< The same of keys and of values.
  Sizes result_strides;
  Node* mask = nullptr;  ///< What is added to the scores; may be missing.
  bool is_causal = false;
  double scale = 1;
};

const Argument* argument(const Node& node, std::size_t position, std::string_view name) {
  if (position < node.args().size()) return &node.args()[position];
  const auto found = std::ranges::find(node.kwargs(), name, &graph::NamedArgument::name);
  return found == node.kwargs().end() ? nullptr : &found->value;
}

bool has_dropout(const Node& node) {
  const Argument* dropout = argument(node, 3, "dropout_p");
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

std::optional<Sizes> float_sizes(const Node* node) {
  const graph::TensorMeta* meta = node == nullptr ? nullptr : node->meta.value.tensor();
  if (meta == nullptr || meta->dtype != ScalarType::Float || !meta->device.is_cpu()) {
    return std::nullopt;
  }
  auto layout = layout_of(*meta);
  if (!layout) return std::nullopt;
  return std::move(layout->sizes);
}

bool can_be_added(const Sizes& mask, const Sizes& scores) {
  if (mask.size() > scores.size()) return false;
  const std::size_t missing = scores.size() - mask.size();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 1 && mask[i] != scores[missing + i]) return false;
  }
  return true;
}

std::optional<Attention> attention_of(const Node& node) {
  if (!node.calls("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default") ||
      node.args().size() < 3 || has_dropout(node) || only_result(node) == nullptr) {
    return std::nullopt;
  }
  const auto query = float_sizes(node.args()[0].node());
  const auto keys = float_sizes(node.args()[1].node());
  const auto values = float_sizes(node.args()[2].node());
  const graph::TensorMeta* meta = only_result(node)->meta.value.tensor();
  const auto result = meta == nullptr ? std::nullopt : layout_of(*meta);
  if (!query || !keys || !values || !result || *keys != *values || query->size() != 4 ||
      keys->size() != 4 || (*query)[1] != (*keys)[1]) {
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
  // Which keys a causal query sees is a question only if there are as many of both.
  if (found.is_causal && (*query)[2] != (*keys)[2]) return std::nullopt;
  if (const Argument* mask = argument(node, 5, "attn_mask"); mask != nullptr && !mask->is_none()) {
    found.mask = mask->node();
    if (found.is_causal) return std::nullopt;
    const auto sizes = float_sizes(found.mask);
    if (!sizes || !can_be_added(*sizes, {(*query)[0], (*query)[1], (*query)[2], (*keys)[2]})) {
      return std::nullopt;
    }
  }
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
    Node& products = builder_.call("bmm", {&query, &turned}, floats({batch_, length_, keys_}));
    Node& scores = masked(builder_.call("mul.Scalar", {&by_head(products, keys_), attention_.scale},
                                        floats(heads_by(keys_))));
    const Argument last = list_of({-1});
    Node& largest = builder_.call("amax", {&scores, last, true}, floats(heads_by(1)));
    // Where all keys are masked the result is 0.
    Node& is_blind = builder_.call("eq.Scalar", {&largest, -kInfinity},
                                   row_major(ScalarType::Bool, heads_by(1)));
    Node& shift = where(is_blind, 0, largest);
    Node& shifted = builder_.call("sub.Tensor", {&scores, &shift}, floats(heads_by(keys_)));
    Node& weights = builder_.call("exp", {&shifted}, floats(heads_by(keys_)));
    Node& total = builder_.call("sum.dim_IntList", {&weights, last, true}, floats(heads_by(1)));
    Node& packed_weights = builder_.call("view", {&weights, list_of({batch_, length_, keys_})},
                                         floats({batch_, length_, keys_}));
    Node& sums = builder_.call("bmm", {&packed_weights, &value}, floats({batch_, length_, depth_}));
    Node& means = builder_.call("div.Tensor", {&by_head(sums, depth_), &where(is_blind, 1, total)},
                                floats(attention_.query));
    // In the order of the elements that ATen's result has.
    Node& result = *only_result(node_);
    result.set_target("torch.ops.aten.clone.default");
    result.set_arguments({&means});
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

  Sizes heads_by(std::int64_t columns) const {
    return {attention_.query[0], attention_.query[1], length_, columns};
  }

  Node& by_head(Node& packed, std::int64_t columns) {
    return builder_.call("view", {&packed, list_of(heads_by(columns))}, floats(heads_by(columns)));
  }

  Node& constant(double number) {
    return builder_.call("full", {list_of({}), number}, floats({}),
                         {{"dtype", Argument(ScalarType::Float)}});
  }

  // A number where the condition holds, for each row.
  Node& where(Node& condition, double number, Node& otherwise) {
    return builder_.call("where.self", {&condition, &constant(number), &otherwise},
                         floats(heads_by(1)));
  }

  Node& masked(Node& scores) {
    const TensorRef layout = floats(heads_by(keys_));
    if (attention_.mask != nullptr) {
      return builder_.call("add.Tensor", {&scores, attention_.mask}, layout);
    }
    if (!attention_.is_causal) return scores;
    const TensorRef mask = row_major(ScalarType::Bool, {length_, keys_});
    Node& all = builder_.call("full", {list_of(mask.sizes), true}, mask,
                              {{"dtype", Argument(ScalarType::Bool)}});
    Node& seen = builder_.call("tril", {&all}, mask);
    return builder_.call("where.self", {&seen, &scores, &constant(-kInfinity)}, layout);
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
