// Convolutions of one pixel with channels last are products of matrices: pixels by channels, times
// channels by channels. What ATen does for them, oneDNN's products do in half the time where
// `prefers_onednn` says so. Runs after channels_last, which gives the images that order.
#include <algorithm>
#include <optional>

#include "graph/pass_manager.h"
#include "kernels/call_builder.h"
#include "kernels/matmul.h"

namespace assay::kernels {

namespace {

using graph::Argument;
using graph::Node;

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
  const auto input = layout_ref(args[0].node());
  const auto weight = layout_ref(args[1].node());
  const auto result = layout_ref(&node);
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

void replace(graph::Graph& graph, Node& node, const Matrices& matrices) {
  CallBuilder builder(graph, node);
  const std::vector<Argument> args = node.args();
  const TensorRef input = *layout_ref(args[0].node());
  const auto& [pixels, weights] = matrices;
  Node& last =
      builder.call("permute", {args[0], list_of({0, 2, 3, 1})}, permuted(input, {0, 2, 3, 1}));
  Node& left = builder.call("view", {&last, list_of(pixels.sizes)}, pixels);
  Node& rows = builder.call("view", {args[1], list_of(weights.sizes)}, weights);
  Node& right = builder.call("permute", {&rows, list_of({1, 0})}, permuted(weights, {1, 0}));
  const TensorRef product = row_major(input.dtype, {pixels.sizes[0], weights.sizes[0]});
  Node* made = &builder.call("mm", {&left, &right}, product);
  if (!args[2].is_none()) made = &builder.call("add.Tensor", {made, args[2]}, product);
  const TensorRef image =
      row_major(input.dtype, {input.sizes[0], input.sizes[2], input.sizes[3], weights.sizes[0]});
  Node& images = builder.call("view", {made, list_of(image.sizes)}, image);
  node.set_target("torch.ops.aten.permute.default");
  node.set_arguments({&images, list_of({0, 3, 1, 2})});
}

void multiply_pixels(graph::Graph& graph, graph::PassContext& context) {
  for (Node& node : graph.nodes()) {
    const auto matrices = matrices_of(node);
    if (matrices && context.may_apply()) replace(graph, node, *matrices);
  }
}

const graph::RegisterPass registered_products(
    {.name = "products_of_convolutions",
     .room = "kernels",
     .description = "multiplies matrices instead of convolving with single pixels",
     .rewrite = &multiply_pixels});

}  // namespace

}  // namespace assay::kernels
