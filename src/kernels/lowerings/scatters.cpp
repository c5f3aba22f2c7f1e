// Writes at positions that tensors name. The result is a copy of the first argument; what is
// written to it follows in eager's order: row-major over the indices, the later of two writes wins.
#include <algorithm>
#include <array>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/indices.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

enum class Write { store, add };

void copy_base(Call& call) {
  const TensorRef result = call.result();
  Body& body = call.kernel(result.sizes);
  body.store(result, body.load(call.operand(0)));
}

void write_at(Body& body, Write write, const TensorRef& target, const Index& index, Value value,
              Value offset) {
  if (write == Write::add) {
    body.add_at(target, index, value, offset);
  } else {
    body.store_at(target, index, value, offset);
  }
}

// `self[mask] = number`: the one use of a mask that does not ask where it is true.
Refusal fill_by_mask(Call& call, const std::vector<std::optional<TensorRef>>& indices) {
  const TensorRef values = call.operand(2);
  const TensorRef result = call.result();
  std::size_t first = 0;
  while (!indices[first]) ++first;
  for (std::size_t i = first + 1; i < indices.size(); ++i) {
    if (indices[i]) return "indexed by a mask and more";
  }
  const bool accumulates = call.flag(3);
  if (element_count(values) != 1 || accumulates) return "indexed by a mask";
  const TensorRef& mask = *indices[first];
  if (mask.dtype != ScalarType::Bool && mask.dtype != ScalarType::Byte) return "indexed by a mask";
  Body& body = call.pointwise();
  std::vector<std::size_t> loops(mask.sizes.size());
  for (std::size_t i = 0; i < loops.size(); ++i) loops[i] = first + i;
  const Value is_set = body.cast(body.load(mask, Body::index_of(mask, loops)), ScalarType::Bool);
  const Value number = body.load(values, {values.offset, {}});
  body.store(result, where(is_set, number, body.load(call.operand(0))));
  return nullptr;
}

Refusal index_put(Call& call) {
  const TensorRef result = call.result();
  const TensorRef values = call.operand(2);
  if (values.dtype != result.dtype) return "dtypes differ";
  const auto is_mask = [](const std::optional<TensorRef>& index) {
    return index && (index->dtype == ScalarType::Bool || index->dtype == ScalarType::Byte);
  };
  const auto indices = call.tensors(1);
  if (std::ranges::any_of(indices, is_mask)) return fill_by_mask(call, indices);
  const AdvancedIndex index(result, call.tensors(1));
  if (index.refusal() != nullptr) return index.refusal();
  if (values.sizes.size() > index.sizes().size()) return "values with more dimensions than indices";
  copy_base(call);
  Body& body = call.kernel(index.sizes());
  const Value value = body.load(expand(values, index.sizes()));
  const Value offset = index.offset(body);
  write_at(body, call.flag(3) ? Write::add : Write::store, result, index.plain_index(), value,
           offset);
  return nullptr;
}

// Along one dimension; the source is a tensor of at least the index's sizes, or a number.
Refusal scatter_along(Call& call, Write write) {
  const TensorRef result = call.result();
  const TensorRef index = call.operand(2);
  if (index.dtype != ScalarType::Long) return "its index is not int64";
  if (result.sizes.empty() || index.sizes.empty()) return "a tensor without dimensions";
  const std::size_t dimension = wrap_dimension(call.integer(1), result.sizes.size());
  copy_base(call);
  Body& body = call.kernel(index.sizes);
  Value value;
  if (auto source = call.tensor(3)) {
    source->sizes = index.sizes;  // what lies beyond is not read
    value = body.load(*source);
  } else {
    value = body.constant(call.number(3), result.dtype);
  }
  const Value offset = checked_offset(body, body.load(index), result.sizes[dimension],
                                      result.strides[dimension], false);
  Index plain{result.offset, result.strides};
  plain.coefficients[dimension] = 0;
  write_at(body, write, result, plain, value, offset);
  return nullptr;
}

Refusal scatter(Call& call) { return scatter_along(call, Write::store); }

Refusal scatter_add(Call& call) {
  if (is_reduced(call.result_dtype())) return "sums of halves are rounded once, after the last one";
  return scatter_along(call, Write::add);
}

// Whole rows of the result along one dimension, at the positions of a one-dimensional index.
template <Write write>
Refusal write_rows(Call& call) {
  const TensorRef result = call.result();
  if (result.sizes.empty()) return "a tensor without dimensions";
  if (write == Write::add && is_reduced(result.dtype)) return "sums of halves are rounded once";
  const std::size_t dimension = wrap_dimension(call.integer(1), result.sizes.size());
  TensorRef index = call.operand(2);
  if (index.sizes.empty()) index = unsqueeze(index, 0);
  copy_base(call);
  Sizes loops = result.sizes;
  loops[dimension] = index.sizes[0];
  Body& body = call.kernel(loops);
  Value value;
  if (const auto source = call.tensor(3)) {
    value = load_as(body, expand(*source, loops), result.dtype);
  } else {
    value = body.constant(call.number(3), result.dtype);
  }
  if (write == Write::add && call.number(4).toDouble() != 1) {
    if (value.dtype == ScalarType::Bool) return "a multiple of bools";
    value = value * constant_like(value, call.number(4));
    value = body.cast(value, result.dtype);
  }
  const std::size_t loop[] = {dimension};
  const Value position = body.load(index, Body::index_of(index, loop));
  const Value offset =
      checked_offset(body, position, result.sizes[dimension], result.strides[dimension], false);
  Index plain{result.offset, result.strides};
  plain.coefficients[dimension] = 0;
  write_at(body, write, result, plain, value, offset);
  return nullptr;
}

Refusal embedding_backward(Call& call) {
  if (call.flag(4)) return "gradients scaled by frequency";
  const TensorRef gradient = call.operand(0);
  const TensorRef indices = call.operand(1);
  const TensorRef result = call.result();
  const std::int64_t padding = call.integer(3);
  Body& zeros = call.kernel(result.sizes);
  zeros.store(result, zeros.constant(0, result.dtype));
  Body& body = call.kernel(gradient.sizes);
  std::vector<std::size_t> loops(indices.sizes.size());
  for (std::size_t i = 0; i < loops.size(); ++i) loops[i] = i;
  const Value position =
      body.cast(body.load(indices, Body::index_of(indices, loops)), ScalarType::Long);
  Value value = body.cast(body.load(gradient), compute_dtype(result.dtype));
  if (padding >= 0) {
    const Value is_padding = eq(position, body.constant(padding, ScalarType::Long));
    value = where(is_padding, 0, value);
  }
  const Value offset = checked_offset(body, position, result.sizes[0], result.strides[0], false);
  Index plain{result.offset, Sizes(gradient.sizes.size(), 0)};
  plain.coefficients.back() = result.strides[1];
  body.add_at(result, plain, value, offset);
  return nullptr;
}

}  // namespace

LoweringTable scatter_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::_unsafe_index_put", "scatter", index_put},
      {"aten::embedding_dense_backward", "scatter", embedding_backward},
      {"aten::index_add", "scatter", write_rows<Write::add>},
      {"aten::index_copy", "scatter", write_rows<Write::store>},
      {"aten::index_fill.int_Scalar", "scatter", write_rows<Write::store>},
      {"aten::index_put", "scatter", index_put},
      {"aten::scatter.src", "scatter", scatter},
      {"aten::scatter.value", "scatter", scatter},
      {"aten::scatter_add", "scatter", scatter_add},
  });
  return kRows;
}

}  // namespace assay::kernels
