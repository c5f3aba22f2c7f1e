// Reads at positions that tensors name: index, gather, embedding. An index out of range raises.
#include <array>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/indices.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

Refusal index_lowering(Call& call) {
  const TensorRef self = call.operand(0);
  const AdvancedIndex index(self, call.tensors(1));
  if (index.refusal() != nullptr) return index.refusal();
  if (index.sizes() != call.result_sizes()) return "sizes depend on values";
  Body& body = call.pointwise();
  const Value offset = index.offset(body);
  body.store(call.result(), body.load_at(self, index.plain_index(), offset));
  return nullptr;
}

// `self` at the position that `index` names along one dimension, for each of its elements.
Refusal gather(Call& call) {
  TensorRef self = call.operand(0);
  TensorRef index = call.operand(2);
  if (index.dtype != ScalarType::Long) return "its index is not int64";
  Body& body = call.pointwise();
  const TensorRef result = call.result();
  if (self.sizes.empty()) {
    self = unsqueeze(self, 0);
    if (!index.sizes.empty()) return "gathers many elements of one without dimensions";
    const Value offset = checked_offset(body, body.load(index), 1, 0, false);
    body.store(result, body.load_at(self, {self.offset, {}}, offset));
    return nullptr;
  }
  if (index.sizes.empty()) return "an index without dimensions";
  const std::size_t dimension = wrap_dimension(call.integer(1), self.sizes.size());
  const Value offset =
      checked_offset(body, body.load(index), self.sizes[dimension], self.strides[dimension], false);
  Index plain{self.offset, self.strides};
  plain.coefficients[dimension] = 0;
  body.store(result, body.load_at(self, plain, offset));
  return nullptr;
}

// Rows of `table` (along `dimension`) at the positions of `index`, whose dimensions replace it.
Refusal rows_at(Call& call, const TensorRef& table, const TensorRef& index, std::size_t dimension) {
  Body& body = call.pointwise();
  const TensorRef result = call.result();
  Index plain{table.offset, {}};
  std::vector<std::size_t> index_loops;
  for (std::size_t i = 0; i < table.sizes.size(); ++i) {
    if (i != dimension) {
      plain.coefficients.push_back(table.strides[i]);
      continue;
    }
    for (std::size_t k = 0; k < index.sizes.size(); ++k) {
      index_loops.push_back(plain.coefficients.size());
      plain.coefficients.push_back(0);
    }
  }
  const Value loaded = body.load(index, Body::index_of(index, index_loops));
  const Value offset =
      checked_offset(body, loaded, table.sizes[dimension], table.strides[dimension], false);
  body.store(result, body.load_at(table, plain, offset));
  return nullptr;
}

Refusal embedding(Call& call) { return rows_at(call, call.operand(0), call.operand(1), 0); }

Refusal index_select(Call& call) {
  const TensorRef self = call.operand(0);
  if (self.sizes.empty()) return "of a tensor without dimensions";
  TensorRef index = call.operand(2);
  if (index.sizes.empty()) index = unsqueeze(index, 0);
  return rows_at(call, self, index, wrap_dimension(call.integer(1), self.sizes.size()));
}

// Positions among all elements, in row-major order.
Refusal take(Call& call) {
  TensorRef self = call.operand(0);
  if (self.strides != row_major_strides(self.sizes)) {
    const TensorRef copy = call.temporary(self.dtype, self.sizes);
    Body& copying = call.kernel(self.sizes);
    copying.store(copy, copying.load(self));
    self = copy;
  }
  Body& body = call.pointwise();
  const Value offset =
      checked_offset(body, body.load(call.operand(1)), element_count(self), 1, true);
  body.store(call.result(), body.load_at(self, {self.offset, {}}, offset));
  return nullptr;
}

}  // namespace

LoweringTable gather_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::_unsafe_index.Tensor", "gather", index_lowering},
      {"aten::embedding", "gather", embedding},
      {"aten::gather", "gather", gather},
      {"aten::index.Tensor", "gather", index_lowering},
      {"aten::index_select", "gather", index_select},
      {"aten::take", "gather", take},
  });
  return kRows;
}

}  // namespace assay::kernels
