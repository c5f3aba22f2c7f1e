// Operators that put elements elsewhere: joins, pads, flips, rolls, repeats, triangles, and the
// backwards of slices. Each is one copy per part, or one kernel with conditions.
#include <array>
#include <limits>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

void copy_part(Call& call, const TensorRef& target, const TensorRef& source) {
  Body& body = call.kernel(target.sizes);
  body.store(target, body.load(source));
}

void fill_with_zeros(Call& call, const TensorRef& target) {
  Body& body = call.kernel(target.sizes);
  body.store(target, body.constant(0, target.dtype));
}

Refusal cat(Call& call) {
  const TensorRef result = call.result();
  const std::size_t dimension = wrap_dimension(call.integer(1), result.sizes.size());
  std::int64_t start = 0;
  for (const auto& part : call.tensors(0)) {
    // Of old, a tensor without elements joins with any other.
    if (part->sizes.size() == 1 && part->sizes[0] == 0) continue;
    const std::int64_t length = part->sizes[dimension];
    copy_part(call, slice(result, dimension, start, length), *part);
    start += length;
  }
  return nullptr;
}

Refusal stack(Call& call) {
  const TensorRef result = call.result();
  const std::size_t dimension = wrap_dimension(call.integer(1), result.sizes.size());
  std::int64_t position = 0;
  for (const auto& part : call.tensors(0)) {
    copy_part(call, select(result, dimension, position++), *part);
  }
  return nullptr;
}

Refusal flip_lowering(Call& call) {
  TensorRef source = call.operand(0);
  for (const std::int64_t dimension : call.integers(1)) {
    if (source.sizes.empty()) continue;
    source = flip(source, wrap_dimension(dimension, source.sizes.size()));
  }
  copy_part(call, call.result(), source);
  return nullptr;
}

// Every rolled dimension cuts the tensor in two.
Refusal roll(Call& call) {
  TensorRef source = call.operand(0);
  TensorRef target = call.result();
  const Sizes shifts = call.integers(1);
  Sizes dimensions = call.integers(2);
  if (dimensions.empty()) {
    // Rolled as if it had one dimension, which it must have.
    if (source.sizes.size() > 1) return "rolls the flattened tensor";
    dimensions = {0};
  }
  if (source.sizes.empty() || element_count(source) == 0) {
    copy_part(call, target, source);
    return nullptr;
  }
  std::vector<std::pair<TensorRef, TensorRef>> parts{{target, source}};
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const std::size_t dimension = wrap_dimension(dimensions[i], source.sizes.size());
    const std::int64_t size = source.sizes[dimension];
    const std::int64_t shift = ((shifts[i] % size) + size) % size;
    if (shift == 0) continue;
    std::vector<std::pair<TensorRef, TensorRef>> cut;
    for (const auto& [to, from] : parts) {
      if (to.sizes[dimension] != size) return "rolls a dimension twice";
      cut.emplace_back(slice(to, dimension, shift, size - shift),
                       slice(from, dimension, 0, size - shift));
      cut.emplace_back(slice(to, dimension, 0, shift), slice(from, dimension, size - shift, shift));
    }
    parts = std::move(cut);
  }
  for (const auto& [to, from] : parts) copy_part(call, to, from);
  return nullptr;
}

// A loop over the copies around each dimension's own.
Refusal repeat(Call& call) {
  TensorRef source = call.operand(0);
  const TensorRef result = call.result();
  const Sizes repeats = call.integers(1);
  while (source.sizes.size() < repeats.size()) source = unsqueeze(source, 0);
  Sizes loops;
  Index from{source.offset, {}};
  Index to{result.offset, {}};
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    loops.push_back(repeats[i]);
    from.coefficients.push_back(0);
    to.coefficients.push_back(result.strides[i] * source.sizes[i]);
    loops.push_back(source.sizes[i]);
    from.coefficients.push_back(source.strides[i]);
    to.coefficients.push_back(result.strides[i]);
  }
  Body& body = call.kernel(loops);
  body.store(result, to, body.load(source, from));
  return nullptr;
}

// `lower <= loop variable < upper`.
Condition loop_between(std::size_t loop, std::int64_t lower, std::int64_t upper) {
  Condition condition{.lower = lower, .upper = upper};
  condition.index.coefficients.resize(loop + 1, 0);
  condition.index.coefficients[loop] = 1;
  return condition;
}

Refusal constant_pad(Call& call) {
  const TensorRef source = call.operand(0);
  const Sizes pads = call.integers(1);
  Body& body = call.pointwise();
  Index index{source.offset, source.strides};
  std::vector<Condition> conditions;
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    const std::size_t dimension = source.sizes.size() - 1 - i;
    const std::int64_t before = pads[2 * i];
    index.offset -= before * source.strides[dimension];
    if (before <= 0 && pads[2 * i + 1] <= 0) continue;
    conditions.push_back(loop_between(dimension, before, before + source.sizes[dimension]));
  }
  const TensorRef result = call.result();
  const Value padding = body.constant(call.number(2), result.dtype);
  if (element_count(source) == 0) {
    body.store(result, padding);
  } else if (conditions.empty()) {
    body.store(result, body.load(source, index));
  } else {
    body.store(result, body.load_if(source, index, std::move(conditions), padding));
  }
  return nullptr;
}

struct SliceRange {
  std::int64_t start;
  std::int64_t length;
};

// Bounds as in Python, clamped.
SliceRange slice_range(const Call& call, std::size_t position, std::int64_t size,
                       std::int64_t step) {
  const auto clamped = [&](std::size_t argument, std::int64_t otherwise) {
    std::int64_t bound = call.is_none(argument) ? otherwise : call.integer(argument);
    if (bound < 0) bound += size;
    return std::clamp<std::int64_t>(bound, 0, size);
  };
  const std::int64_t start = clamped(position, 0);
  const std::int64_t end = std::max(clamped(position + 1, size), start);
  return {start, (end - start + step - 1) / step};
}

// Writes `part` to a slice of the result, and `base` (zeros, if there is none) around it.
Refusal write_slice(Call& call, const std::optional<TensorRef>& base, const TensorRef& part,
                    std::size_t dimension, SliceRange range, std::int64_t step) {
  const TensorRef result = call.result();
  if (step != 1) {
    if (base) {
      copy_part(call, result, *base);
    } else {
      fill_with_zeros(call, result);
    }
    copy_part(call, slice(result, dimension, range.start, range.length, step), part);
    return nullptr;
  }
  Body& body = call.pointwise();
  const Value around = base ? body.load(*base) : body.constant(0, result.dtype);
  if (range.length == 0) {
    body.store(result, around);
    return nullptr;
  }
  Sizes sizes = result.sizes;
  sizes[dimension] = range.length;
  const TensorRef expanded = expand(part, sizes);
  const Index index{expanded.offset - range.start * expanded.strides[dimension], expanded.strides};
  body.store(result,
             body.load_if(expanded, index,
                          {loop_between(dimension, range.start, range.start + range.length)},
                          body.cast(around, part.dtype)));
  return nullptr;
}

Refusal slice_backward(Call& call) {
  const std::size_t dimension = wrap_dimension(call.integer(2), call.result_sizes().size());
  const std::int64_t step = call.integer(5);
  const SliceRange range = slice_range(call, 3, call.result_sizes()[dimension], step);
  return write_slice(call, std::nullopt, call.operand(0), dimension, range, step);
}

Refusal slice_scatter(Call& call) {
  if (call.operand(0).dtype != call.operand(1).dtype) return "dtypes differ";
  const std::size_t dimension = wrap_dimension(call.integer(2), call.result_sizes().size());
  const std::int64_t step = call.integer(5);
  const SliceRange range = slice_range(call, 3, call.result_sizes()[dimension], step);
  return write_slice(call, call.operand(0), call.operand(1), dimension, range, step);
}

Refusal write_selected(Call& call, const std::optional<TensorRef>& base, const TensorRef& part,
                       std::int64_t dimension, std::int64_t index) {
  const std::size_t wrapped = wrap_dimension(dimension, call.result_sizes().size());
  const std::int64_t size = call.result_sizes()[wrapped];
  if (index < 0) index += size;
  return write_slice(call, base, unsqueeze(part, wrapped), wrapped, {index, 1}, 1);
}

Refusal select_backward(Call& call) {
  return write_selected(call, std::nullopt, call.operand(0), call.integer(2), call.integer(3));
}

Refusal select_scatter(Call& call) {
  if (call.operand(0).dtype != call.operand(1).dtype) return "dtypes differ";
  return write_selected(call, call.operand(0), call.operand(1), call.integer(2), call.integer(3));
}

TensorRef diagonal_of(const TensorRef& ref, std::int64_t offset, std::size_t first,
                      std::size_t second) {
  TensorRef result = ref;
  result.offset += offset >= 0 ? offset * ref.strides[second] : -offset * ref.strides[first];
  const std::int64_t rows = ref.sizes[first] - (offset < 0 ? -offset : 0);
  const std::int64_t columns = ref.sizes[second] - (offset > 0 ? offset : 0);
  const std::int64_t length = std::max<std::int64_t>(std::min(rows, columns), 0);
  for (const std::size_t gone : {std::max(first, second), std::min(first, second)}) {
    result = select(result, gone, 0);
  }
  result.sizes.push_back(length);
  result.strides.push_back(ref.strides[first] + ref.strides[second]);
  return result;
}

Refusal diagonal_scatter(Call& call) {
  const TensorRef result = call.result();
  copy_part(call, result, call.operand(0));
  const std::size_t rank = result.sizes.size();
  copy_part(call,
            diagonal_of(result, call.integer(2), wrap_dimension(call.integer(3), rank),
                        wrap_dimension(call.integer(4), rank)),
            call.operand(1));
  return nullptr;
}

// Below the diagonal, or above it.
template <bool is_lower>
Refusal triangle(Call& call) {
  const TensorRef source = call.operand(0);
  const std::size_t rank = source.sizes.size();
  if (rank < 2) return "raises below two dimensions";
  const std::int64_t diagonal = call.integer(1);
  Body& body = call.pointwise();
  // column - row <= diagonal, or >= diagonal.
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  Condition condition{.lower = is_lower ? -kFar : diagonal,
                      .upper = is_lower ? diagonal + 1 : kFar};
  condition.index.coefficients.resize(rank, 0);
  condition.index.coefficients[rank - 2] = -1;
  condition.index.coefficients[rank - 1] = 1;
  const Value zero = body.constant(0, source.dtype);
  body.store(call.result(), body.load_if(source, body.index_of(source), {condition}, zero));
  return nullptr;
}

}  // namespace

LoweringTable join_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::cat", "join", cat},
      {"aten::constant_pad_nd", "join", constant_pad},
      {"aten::diagonal_scatter", "join", diagonal_scatter},
      {"aten::flip", "join", flip_lowering},
      {"aten::repeat", "join", repeat},
      {"aten::roll", "join", roll},
      {"aten::select_backward", "join", select_backward},
      {"aten::select_scatter", "join", select_scatter},
      {"aten::slice_backward", "join", slice_backward},
      {"aten::slice_scatter", "join", slice_scatter},
      {"aten::stack", "join", stack},
      {"aten::tril", "join", triangle<true>},
      {"aten::triu", "join", triangle<false>},
  });
  return kRows;
}

}  // namespace assay::kernels
