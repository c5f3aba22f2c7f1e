#include "reduce/bridge.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::reduce {

namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;
using Sizes = std::vector<std::int64_t>;

std::int64_t product(const Sizes& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

Argument list_of(const Sizes& sizes) {
  graph::List list;
  for (const std::int64_t size : sizes) list.items.emplace_back(size);
  return list;
}

// Makes one tensor look like another, a call after the other.
class Adapter {
 public:
  Adapter(Graph& graph, Node& node, const Look& own, bool as_operators)
      : graph_(graph), node_(&node), sizes_(own.sizes), as_operators_(as_operators) {}

  void reshape(const Sizes& wanted) {
    call("reshape", "torch.ops.aten.reshape.default", list_of(wanted));
    sizes_ = wanted;
  }

  // Elements at the beginning, then repeated: every size becomes the wanted one.
  void slice_and_expand(const Sizes& wanted) {
    const std::size_t dropped = sizes_.size() - std::min(sizes_.size(), wanted.size());
    Sizes kept(sizes_.begin() + static_cast<std::ptrdiff_t>(dropped), sizes_.end());
    const std::size_t added = wanted.size() - kept.size();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const std::int64_t size = wanted[added + i];
      if (kept[i] > size) kept[i] = size;
      if (kept[i] < size) kept[i] = 1;
    }
    slice(dropped, kept);
    if (sizes_ == wanted) return;
    call("expand", "torch.ops.aten.expand.default", list_of(wanted));
    sizes_ = wanted;
  }

  void cast(c10::ScalarType dtype) {
    if (as_operators_) {
      node_ = &graph_.call_function("torch.ops.aten._to_copy.default", {node_}, {{"dtype", dtype}});
    } else {
      node_ = &graph_.call_method("to", {node_, dtype});
    }
  }

  Node* node() const { return node_; }

 private:
  void call(const char* method, const char* target, Argument argument) {
    node_ = as_operators_ ? &graph_.call_function(target, {node_, std::move(argument)})
                          : &graph_.call_method(method, {node_, std::move(argument)});
  }

  // The first element of the leading dimensions, and the beginning of the others.
  void slice(std::size_t dropped, const Sizes& kept) {
    if (dropped == 0 && kept == sizes_) return;
    if (as_operators_) {
      for (std::size_t i = 0; i < dropped; ++i) {
        node_ = &graph_.call_function("torch.ops.aten.select.int", {node_, 0, 0});
      }
      for (std::size_t i = 0; i < kept.size(); ++i) {
        if (kept[i] == sizes_[dropped + i]) continue;
        node_ = &graph_.call_function("torch.ops.aten.slice.Tensor",
                                      {node_, static_cast<std::int64_t>(i), 0, kept[i]});
      }
    } else {
      graph::Tuple index;
      for (std::size_t i = 0; i < dropped; ++i) index.items.emplace_back(0);
      for (std::size_t i = 0; i < kept.size(); ++i) {
        Argument end;
        if (kept[i] != sizes_[dropped + i]) end = kept[i];
        index.items.emplace_back(graph::Slice{{Argument(), std::move(end), Argument()}});
      }
      node_ = &graph_.call_function("operator.getitem", {node_, std::move(index)});
    }
    sizes_ = kept;
  }

  Graph& graph_;
  Node* node_;
  Sizes sizes_;
  bool as_operators_;
};

}  // namespace

std::optional<Look> look_of(const Candidate& program, const Node& node) {
  if (program.values == nullptr) return std::nullopt;
  const auto found = program.values->find(node.name());
  if (found == program.values->end() || found->second.kind != RecordedValue::Kind::tensor) {
    return std::nullopt;
  }
  const graph::TensorMeta& meta = found->second.tensor.meta;
  Look look{{}, meta.dtype};
  for (const graph::SizeExpr& size : meta.sizes) look.sizes.push_back(*size.constant());
  return look;
}

bool is_cheap(const Node& node) {
  static constexpr std::array<std::string_view, 8> kCheap = {
      "neg", "reshape", "expand", "getitem", "select", "slice", "to", "_to_copy"};
  return std::ranges::find(kCheap, node.target().base_name()) != kCheap.end();
}

Node* adapt(Graph& graph, Node& node, const Look& own, const Look& wanted, bool as_operators) {
  Adapter adapter(graph, node, own, as_operators);
  if (own.sizes != wanted.sizes) {
    const std::int64_t count = product(own.sizes);
    const std::int64_t wanted_count = product(wanted.sizes);
    if (count == wanted_count) {
      adapter.reshape(wanted.sizes);
    } else if (count == 0 || wanted_count == 0) {
      return nullptr;
    } else {
      adapter.slice_and_expand(wanted.sizes);
    }
  }
  if (own.dtype != wanted.dtype) adapter.cast(wanted.dtype);
  return adapter.node();
}

}  // namespace assay::reduce
