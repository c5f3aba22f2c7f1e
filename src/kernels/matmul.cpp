#include "kernels/matmul.h"

#include <ATen/Context.h>

#include <algorithm>

#include "config/config.h"
#include "graph/pass_manager.h"
#include "kernels/call_builder.h"
#include "kernels/tensor_ref.h"

// Exported by libtorch_cpu, but in none of its headers: result = alpha * left @ right
// + beta * result, for matrices and for batches of them.
namespace at::native {
void mkldnn_matmul(const Tensor& left, const Tensor& right, const Tensor& result, float beta,
                   float alpha);
}

namespace assay::kernels {

namespace {

using graph::Node;

// Multiplications; with fewer the 9 us that oneDNN takes to find its kernel are not worth it.
constexpr std::int64_t kSmallestWork = 1'600'000;

bool has_faster_onednn() {
#ifdef __x86_64__
  static const bool has = [] {
    __builtin_cpu_init();
    return at::hasMKLDNN() && __builtin_cpu_supports("avx512f") && !__builtin_cpu_is("intel");
  }();
  return has;
#else
  return false;
#endif
}

bool is_onednn_wanted() {
  const std::string_view wanted = config::get<"matmul">();
  if (wanted == "aten" || !at::globalContext().userEnabledMkldnn()) return false;
  return wanted == "onednn" ? at::hasMKLDNN() : has_faster_onednn();
}

// Row-major, or the transposed of a row-major one: others oneDNN copies first.
bool is_dense(const TensorRef& ref) {
  TensorRef transposed = ref;
  std::swap(transposed.sizes.back(), transposed.sizes[ref.sizes.size() - 2]);
  std::swap(transposed.strides.back(), transposed.strides[ref.sizes.size() - 2]);
  return ref.strides == row_major_strides(ref.sizes) ||
         transposed.strides == row_major_strides(transposed.sizes);
}

bool gains(const Node& node) {
  const bool is_sum =
      node.calls("torch.ops.aten.addmm.default") || node.calls("torch.ops.aten.baddbmm.default");
  if (!is_sum || node.args().size() != 3 || !node.kwargs().empty()) return false;
  const auto left = layout_ref(node.args()[1].node());
  const auto right = layout_ref(node.args()[2].node());
  return left && right && prefers_onednn(*left, *right);
}

void split_addmm(graph::Graph& graph, graph::PassContext& context) {
  for (Node& node : graph.nodes()) {
    if (!gains(node) || !context.may_apply()) continue;
    const bool is_batch = node.target().base_name() == "baddbmm";
    const graph::Graph::InsertBefore here(graph, node);
    Node& product =
        graph.call_function(is_batch ? "torch.ops.aten.bmm.default" : "torch.ops.aten.mm.default",
                            {node.args()[1], node.args()[2]});
    product.meta = node.meta;
    graph::Argument added = node.args()[0];
    node.set_target("torch.ops.aten.add.Tensor");
    node.set_arguments({graph::Argument(&product), std::move(added)});
  }
}

const graph::RegisterPass registered_split_addmm(
    {.name = "split_addmm",
     .room = "kernels",
     .description = "fuses what is added to a matrix product with what follows",
     .rewrite = &split_addmm});

}  // namespace

bool prefers_onednn(const TensorRef& left, const TensorRef& right) {
  const std::size_t rank = left.sizes.size();
  if (left.dtype != c10::ScalarType::Float || right.dtype != left.dtype || rank < 2 ||
      right.sizes.size() != rank) {
    return false;
  }
  return element_count(left) * right.sizes.back() >= kSmallestWork && is_onednn_wanted() &&
         is_dense(left) && is_dense(right);
}

void multiply_by_onednn(const at::Tensor& left, const at::Tensor& right, at::Tensor& out) {
  at::native::mkldnn_matmul(left, right, out, 0, 1);
}

bool gains_by_split_addmm(const graph::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), gains);
}

}  // namespace assay::kernels
