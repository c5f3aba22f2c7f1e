#include "autograd/saved_values.h"

#include <algorithm>

#include "assay/error.h"
#include "autograd/operator_kinds.h"
#include "autograd/partition.h"

namespace assay::autograd {

using graph::Node;
using graph::Op;

const Node& base_of(const Node& node) {
  const Node* base = &node;
  while (kind_of(*base) == OperatorKind::view && !base->args().empty()) {
    const Node* input = base->args()[0].node();
    if (input == nullptr) break;
    base = input;
  }
  return *base;
}

bool is_savable(const Node& node) {
  const auto& value = node.meta.value.value;
  if (std::holds_alternative<graph::TensorMeta>(value)) return true;
  if (std::holds_alternative<graph::SizeExpr>(value)) return true;
  if (node.meta.value.known() || !gives_one_tensor(node)) return false;
  throw UserError("node '" + node.name() + "' has no metadata, so its size is not known",
                  "run propagate_metadata on the joint graph first");
}

bool is_repeatable_attribute(const graph::Graph& joint, const Node& node) {
  if (node.op() != Op::get_attr) return false;
  const graph::Attribute* attribute = joint.attribute(node.target().name());
  if (attribute == nullptr) return true;
  const auto* tensor = std::get_if<graph::TensorAttribute>(&attribute->value);
  return tensor == nullptr || tensor->fill != graph::TensorAttribute::Fill::randn;
}

namespace {

std::uint64_t multiply(std::uint64_t left, std::uint64_t right) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(left, right, &product) ? UINT64_MAX : product;
}

std::uint64_t add(std::uint64_t left, std::uint64_t right) {
  return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

std::uint64_t bytes_of(const graph::ValueMeta& meta) {
  constexpr std::uint64_t kSymbolicSize = 4096;
  if (const graph::TensorMeta* tensor = meta.tensor()) {
    std::uint64_t bytes = c10::elementSize(tensor->dtype);
    for (const graph::SizeExpr& size : tensor->sizes) {
      const auto constant = size.constant();
      bytes = multiply(bytes, constant
                                  ? static_cast<std::uint64_t>(std::max<std::int64_t>(*constant, 0))
                                  : kSymbolicSize);
    }
    return bytes;
  }
  std::uint64_t bytes = 0;
  if (const auto* several = std::get_if<std::vector<graph::ValueMeta>>(&meta.value)) {
    for (const graph::ValueMeta& item : *several) bytes = add(bytes, bytes_of(item));
  }
  return bytes;
}

}  // namespace

std::uint64_t value_bytes(const Node& node) {
  if (!node.meta.value.known() && gives_one_tensor(node)) static_cast<void>(is_savable(node));
  return bytes_of(node.meta.value);
}

}  // namespace assay::autograd
