// Convolutions of one pixel with channels last are products of matrices: pixels by channels, times
// channels by channels. What ATen does for them, oneDNN's products do in half the time where
// `prefers_onednn` says so. Runs after channels_last, which gives the images that order.
#include <algorithm>
#include <optional>

#include "graph/pass_manager.h"
#include "kernels/matmul.h"
#include "kernels/tensor_ref.h"

namespace assay::kernels {

namespace {

using graph::Argument;
using graph::Node;
using graph::TensorMeta;

std::optional<TensorRef> tensor_of(const Node* node) {
  const TensorMeta* meta = node == nullptr ? nullptr : node->meta.value.tensor();
  const auto layout = meta == nullptr || !meta->device.is_cpu() ? std::nullopt : layout_of(*meta);
  if (!layout || layout->offset != 0) return std::nullopt;
  return TensorRef{0, meta->dtype, layout->sizes, layout->strides, 0};
}

TensorRef permuted(const TensorRef& ref, std::initializer_list<std::size_t> order) {
  TensorRef made = ref;
  made.sizes.clear();
  made.strides.clear();
  for (const std::size_t dimension : order) {
    made.sizes.push_back(ref.sizes[dimension]);
    made.strides.push_back(ref.strides[dimension]);
  }
  return made;
}

TensorRef row_major(c10::ScalarType dtype, Sizes sizes) {
  Sizes strides = row_major_strides(sizes);
  return {0, dtype, std::move(sizes), std::move(strides), 0};
}

bool is_row_major(const TensorRef& ref) { return ref.strides == row_major_strides(ref.sizes); }

bool are_all(const Argument& numbers, std::int64_t wanted) {
  return std::ranges::all_of(numbers.items(), [&](const Argument& item) {
    const auto* number = item.get_if<std::int64_t>();
    return number != nullptr && *number == wanted;
  });
}

// The matrices of a convolution that is a product.
struct Matrices {
  TensorRef pixels;   ///< Rows are pixels, columns their channels.
  TensorRef weights;  ///< Rows are channels of the result.
};

std::optional<Matrices> matrices_of(const Node& node) {
  if (!node.calls("torch.ops.aten.convolution.default") || node.args().size() != 9) {
    return std::nullopt;
  }
  const auto& args = node.args();
  const bool* is_transposed = args[6].get_if<bool>();
  const auto* groups = args[8].get_if<std::int64_t>();
  if (is_transposed == nullptr || *is_transposed || groups == nullptr || *groups != 1 ||
      !are_all(args[3], 1) || !are_all(args[4], 0)) {
    return std::nullopt;
  }
  const auto input = tensor_of(args[0].node());
  const auto weight = tensor_of(args[1].node());
  const auto result = tensor_of(&node);
  if (!input || !weight || !result || input->sizes.size() != 4 || weight->sizes.size() != 4 ||
      weight->sizes[2] != 1 || weight->sizes[3] != 1 || !is_row_major(*weight) ||
      !is_row_major(permuted(*input, {0, 2, 3, 1})) ||
      !is_row_major(permuted(*result, {0, 2, 3, 1}))) {
    return std::nullopt;
  }
  const Sizes& sizes = input->sizes;
  Matrices found{row_major(input->dtype, {sizes[0] * sizes[2] * sizes[3], sizes[1]}),
                 row_major(weight->dtype, {weight->sizes[0], weight->sizes[1]})};
  if (!prefers_onednn(found.pixels, permuted(found.weights, {1, 0}))) return std::nullopt;
  return found;
}

class Rewriter {
 public:
  Rewriter(graph::Graph& graph, Node& node) : graph_(graph), node_(node) {}

  void run(const Matrices& matrices) {
    const graph::Graph::InsertBefore here(graph_, node_);
    const std::vector<Argument> args = node_.args();
    const TensorRef input = *tensor_of(args[0].node());
    const TensorRef last = permuted(input, {0, 2, 3, 1});
    Node& moved = call("permute", {args[0], order({0, 2, 3, 1})}, last);
    Node& pixels = call("view", {&moved, order(matrices.pixels.sizes)}, matrices.pixels);
    Node& weights = call("view", {args[1], order(matrices.weights.sizes)}, matrices.weights);
    Node& turned = call("permute", {&weights, order({1, 0})}, permuted(matrices.weights, {1, 0}));
    const Sizes sizes = {matrices.pixels.sizes[0], matrices.weights.sizes[0]};
    const TensorRef product = row_major(input.dtype, sizes);
    Node* made = &call("mm", {&pixels, &turned}, product);
    if (!args[2].is_none()) made = &call("add", {made, args[2]}, product, "Tensor");
    const TensorRef image = row_major(
        input.dtype, {input.sizes[0], input.sizes[2], input.sizes[3], matrices.weights.sizes[0]});
    Node& images = call("view", {made, order(image.sizes)}, image);
    node_.set_target("torch.ops.aten.permute.default");
    node_.set_arguments({&images, order({0, 3, 1, 2})});
  }

 private:
  static Argument order(const Sizes& numbers) {
    graph::List list;
    for (const std::int64_t number : numbers) list.items.emplace_back(number);
    return list;
  }

  Node& call(const std::string& op, std::vector<Argument> args, const TensorRef& meta,
             const std::string& overload = "default") {
    Node& made = graph_.call_function("torch.ops.aten." + op + "." + overload, std::move(args));
    made.meta = node_.meta;
    TensorMeta& tensor = std::get<TensorMeta>(made.meta.value.value);
    tensor.sizes.assign(meta.sizes.begin(), meta.sizes.end());
    tensor.strides.assign(meta.strides.begin(), meta.strides.end());
    return made;
  }

  graph::Graph& graph_;
  Node& node_;
};

void rewrite(graph::Graph& graph, graph::PassContext& context) {
  for (Node& node : graph.nodes()) {
    const auto matrices = matrices_of(node);
    if (matrices && context.may_apply()) Rewriter(graph, node).run(*matrices);
  }
}

const graph::RegisterPass registered_products(
    {.name = "products_of_convolutions",
     .room = "kernels",
     .description = "multiplies matrices instead of convolving with single pixels",
     .rewrite = &rewrite});

}  // namespace

}  // namespace assay::kernels
