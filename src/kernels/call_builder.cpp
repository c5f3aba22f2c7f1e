#include "kernels/call_builder.h"

#include "kernels/tensor_ref.h"

namespace assay::kernels {

using graph::TensorMeta;

std::optional<TensorRef> layout_ref(const graph::Node* node) {
  const TensorMeta* meta = node == nullptr ? nullptr : node->meta.value.tensor();
  const auto layout = meta == nullptr || !meta->device.is_cpu() ? std::nullopt : layout_of(*meta);
  if (!layout || layout->offset != 0) return std::nullopt;
  return TensorRef{0, meta->dtype, layout->sizes, layout->strides, 0};
}

TensorRef row_major(c10::ScalarType dtype, Sizes sizes) {
  Sizes strides = row_major_strides(sizes);
  return {0, dtype, std::move(sizes), std::move(strides), 0};
}

bool is_row_major(const TensorRef& ref) { return ref.strides == row_major_strides(ref.sizes); }

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

graph::Argument list_of(const Sizes& numbers) {
  graph::List list;
  for (const std::int64_t number : numbers) list.items.emplace_back(number);
  return list;
}

graph::Node& CallBuilder::call(const std::string& op, std::vector<graph::Argument> args,
                               const TensorRef& layout, std::vector<graph::NamedArgument> kwargs) {
  const graph::Graph::InsertBefore here(graph_, node_);
  const std::string overload = op.find('.') == std::string::npos ? ".default" : "";
  graph::Node& made =
      graph_.call_function("torch.ops.aten." + op + overload, std::move(args), std::move(kwargs));
  made.meta.stack = node_.meta.stack;
  made.meta.provenance = node_.meta.provenance;
  TensorMeta meta;
  meta.dtype = layout.dtype;
  meta.sizes.assign(layout.sizes.begin(), layout.sizes.end());
  meta.strides.assign(layout.strides.begin(), layout.strides.end());
  made.meta.value.value = std::move(meta);
  return made;
}

}  // namespace assay::kernels
