// Upsampling by linear interpolation between neighbors.
#include <array>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

// Where one dimension is read: two elements and their weights.
struct Neighbors {
  Value offsets[2];
  Value weights[2];
};

// The arithmetic is ATen's, in the dtype it computes in: a rounding may decide which elements.
Neighbors neighbors(Body& body, std::size_t loop, std::int64_t size, std::int64_t stride,
                    std::int64_t wanted, bool align_corners, std::optional<c10::Scalar> factor,
                    ScalarType dtype) {
  const auto divided = [&](double x, double y) {
    return dtype == ScalarType::Float
               ? static_cast<double>(static_cast<float>(x) / static_cast<float>(y))
               : x / y;
  };
  double scale = 0;
  if (align_corners) {
    if (wanted > 1) scale = divided(static_cast<double>(size - 1), static_cast<double>(wanted - 1));
  } else if (factor && factor->toDouble() > 0) {
    scale = 1.0 / factor->toDouble();
  } else {
    scale = divided(static_cast<double>(size), static_cast<double>(wanted));
  }
  const Value number = body.cast(body.loop_index(loop), dtype);
  Value position = number * scale;
  if (!align_corners) {
    position = (number + 0.5) * scale - 0.5;
    position = where(position < 0, 0, position);
  }
  const auto integer = [&](std::int64_t value) { return body.constant(value, ScalarType::Long); };
  const Value first = apply(Op::minimum, body.cast(position, ScalarType::Long), integer(size - 1));
  const Value last = apply(Op::minimum, first + integer(1), integer(size - 1));
  Value second = position - body.cast(first, dtype);
  second = where(second < 0, 0, second);
  second = where(second > 1, 1, second);
  return {{first * integer(stride), last * integer(stride)}, {1.0 - second, second}};
}

// The same from a table that a kernel of its own fills: along the last dimension they would be
// computed anew in every row.
struct NeighborTable {
  TensorRef offsets[2];
  TensorRef second_weights;

  Neighbors load(Body& body, std::size_t loop) const {
    const std::size_t loops[] = {loop};
    const auto at = [&](const TensorRef& ref) {
      return body.load(ref, Body::index_of(ref, loops));
    };
    const Value second = at(second_weights);
    return {{at(offsets[0]), at(offsets[1])}, {1.0 - second, second}};
  }
};

template <typename MakeNeighbors>
NeighborTable make_table(Call& call, std::int64_t wanted, ScalarType dtype,
                         const MakeNeighbors& make_neighbors) {
  const NeighborTable table{
      {call.temporary(ScalarType::Long, {wanted}), call.temporary(ScalarType::Long, {wanted})},
      call.temporary(dtype, {wanted})};
  Body& body = call.kernel({wanted});
  const Neighbors found = make_neighbors(body, 0);
  body.store(table.offsets[0], found.offsets[0]);
  body.store(table.offsets[1], found.offsets[1]);
  body.store(table.second_weights, found.weights[1]);
  return table;
}

template <std::size_t rank>
Refusal linear_upsampling(Call& call) {
  const TensorRef input = call.operand(0);
  const ScalarType dtype = compute_dtype(call.result_dtype());
  if (!c10::isFloatingType(dtype)) return "not of floating point";
  const std::size_t batch = input.sizes.size() - rank;
  const auto neighbors_of = [&](Body& body, std::size_t i, std::size_t loop) {
    const std::size_t dimension = batch + i;
    return neighbors(body, loop, input.sizes[dimension], input.strides[dimension],
                     call.result_sizes()[dimension], call.flag(2), call.optional_number(3 + i),
                     dtype);
  };
  const NeighborTable table =
      make_table(call, call.result_sizes().back(), dtype,
                 [&](Body& body, std::size_t loop) { return neighbors_of(body, rank - 1, loop); });
  Body& body = call.pointwise();
  std::array<Neighbors, rank> found;
  for (std::size_t i = 0; i + 1 < rank; ++i) found[i] = neighbors_of(body, i, batch + i);
  found[rank - 1] = table.load(body, batch + rank - 1);
  Index plain{input.offset, {}};
  for (std::size_t i = 0; i < batch; ++i) plain.coefficients.push_back(input.strides[i]);
  // The last dimension is interpolated first.
  const auto interpolate = [&](const auto& self, std::size_t i,
                               std::optional<Value> offset) -> Value {
    const auto at = [&](std::size_t side) -> Value {
      const Value sum = offset ? *offset + found[i].offsets[side] : found[i].offsets[side];
      if (i + 1 == rank) return body.cast(body.load_at(input, plain, sum), dtype);
      return self(self, i + 1, sum);
    };
    const Value left = at(0) * found[i].weights[0];
    return left + at(1) * found[i].weights[1];
  };
  body.store(call.result(), interpolate(interpolate, 0, std::nullopt));
  return nullptr;
}

}  // namespace

LoweringTable resampling_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::upsample_bilinear2d", "resampling", linear_upsampling<2>},
      {"aten::upsample_linear1d", "resampling", linear_upsampling<1>},
      {"aten::upsample_trilinear3d", "resampling", linear_upsampling<3>},
  });
  return kRows;
}

}  // namespace assay::kernels
