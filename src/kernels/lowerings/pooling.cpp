// Pooling over windows: the window is a pass's inner loops, and what lies outside the input is cut
// off by conditions.
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

// One number for all dimensions, or one each.
Sizes spread(const Sizes& given, std::size_t rank, const Sizes& otherwise) {
  if (given.empty()) return otherwise;
  return given.size() == 1 ? Sizes(rank, given[0]) : given;
}

// The last `rank` dimensions of the input are pooled. Loops: the result's dimensions, then those of
// the window.
class Windows {
 public:
  Windows(const TensorRef& input, std::size_t rank, Sizes kernel, Sizes strides, Sizes padding,
          Sizes dilation)
      : input_(input),
        batch_(input.sizes.size() - rank),
        kernel_(std::move(kernel)),
        strides_(std::move(strides)),
        padding_(std::move(padding)),
        dilation_(std::move(dilation)) {
    // What lies behind the padding, for every result, need not be looked at: a window may be far
    // larger than the input.
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t reach = input.sizes[batch_ + i] + 2 * padding_[i];
      kernel_[i] = std::min(kernel_[i], (reach + dilation_[i] - 1) / dilation_[i]);
    }
  }

  const Sizes& inner() const { return kernel_; }
  std::size_t rank() const { return kernel_.size(); }

  Index input_index() const {
    Index index{input_.offset, Sizes(input_.sizes.size() + rank(), 0)};
    for (std::size_t i = 0; i < batch_; ++i) index.coefficients[i] = input_.strides[i];
    for (std::size_t i = 0; i < rank(); ++i) {
      add(index, position(i), input_.strides[batch_ + i]);
    }
    return index;
  }

  // Within the input, enlarged by so much on both sides.
  std::vector<Condition> inside(const Sizes& before, const Sizes& after) const {
    std::vector<Condition> conditions;
    for (std::size_t i = 0; i < rank(); ++i) {
      conditions.push_back({.index = position(i),
                            .lower = -before[i],
                            .upper = input_.sizes[batch_ + i] + after[i]});
    }
    return conditions;
  }
  std::vector<Condition> inside() const {
    const Sizes none(rank(), 0);
    return inside(none, none);
  }
  std::int64_t image_elements() const {
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < rank(); ++i) elements *= input_.sizes[batch_ + i];
    return elements;
  }

  // The element's number within its image, row by row.
  Index flat_position() const {
    Index index{0, Sizes(input_.sizes.size() + rank(), 0)};
    std::int64_t stride = 1;
    for (std::size_t i = rank(); i-- > 0;) {
      add(index, position(i), stride);
      stride *= input_.sizes[batch_ + i];
    }
    return index;
  }

 private:
  // Of pooled dimension `i` in the input.
  Index position(std::size_t i) const {
    Index index{-padding_[i], Sizes(input_.sizes.size() + rank(), 0)};
    index.coefficients[batch_ + i] = strides_[i];
    index.coefficients[input_.sizes.size() + i] = dilation_[i];
    return index;
  }

  static void add(Index& index, const Index& term, std::int64_t factor) {
    index.offset += factor * term.offset;
    for (std::size_t i = 0; i < term.coefficients.size(); ++i) {
      index.coefficients[i] += factor * term.coefficients[i];
    }
  }

  const TensorRef input_;
  std::size_t batch_;
  Sizes kernel_;
  Sizes strides_;
  Sizes padding_;
  Sizes dilation_;
};

template <std::size_t rank>
Refusal average_pool(Call& call) {
  const TensorRef input = call.operand(0);
  const ScalarType dtype = call.result_dtype();
  if (!c10::isFloatingType(dtype)) return "not of floating point";
  const Sizes kernel = spread(call.integers(1), rank, {});
  const Sizes strides = spread(call.integers(2), rank, kernel);
  const Sizes padding = spread(call.integers(3), rank, Sizes(rank, 0));
  const bool counts_padding = call.flag(5);
  const Windows windows(input, rank, kernel, strides, padding, Sizes(rank, 1));

  Body& body = call.pointwise();
  body.begin_pass(windows.inner());
  const Value zero = body.constant(0, input.dtype);
  const Value x = body.cast(body.load_if(input, windows.input_index(), windows.inside(), zero),
                            compute_dtype(dtype));
  const Value sum = body.reduce(Op::reduce_sum, x);
  Value divisor;
  const auto given = call.optional_number(6);
  if (!given) {
    // A window may also reach beyond the padding, if sizes are rounded up.
    const auto counted = counts_padding ? windows.inside(padding, padding) : windows.inside();
    const Value one = body.cast(body.condition(counted), compute_dtype(dtype));
    divisor = body.reduce(Op::reduce_sum, one);
  }
  body.begin_pass();
  if (given) divisor = body.constant(*given, compute_dtype(dtype));
  body.store(call.result(), sum / divisor);
  return nullptr;
}

bool uses_item(const graph::Node& node, std::int64_t item) {
  return std::ranges::any_of(node.users(), [&](const graph::Node* user) {
    const auto* number =
        user->calls("operator.getitem") ? user->args()[1].get_if<std::int64_t>() : nullptr;
    return number == nullptr || *number == item;
  });
}

template <std::size_t rank>
Refusal max_pool(Call& call) {
  const TensorRef input = call.operand(0);
  const ScalarType dtype = call.result_dtype();
  if (!c10::isFloatingType(dtype)) return "not of floating point";
  // Positions are twice as wide as values; ATen compares them in the values' width.
  const bool is_channels_last = input.sizes.size() == rank + 2 && input.strides[1] == 1;
  if (is_channels_last && uses_item(call.node(), 1)) return "ATen is faster with channels last";
  const Sizes kernel = spread(call.integers(1), rank, {});
  const Sizes strides = spread(call.integers(2), rank, kernel);
  const Sizes padding = spread(call.integers(3), rank, Sizes(rank, 0));
  const Sizes dilation = spread(call.integers(4), rank, Sizes(rank, 1));
  const Windows windows(input, rank, kernel, strides, padding, dilation);

  Body& body = call.pointwise();
  body.begin_pass(windows.inner());
  const Value lowest = body.constant(-std::numeric_limits<double>::infinity(), input.dtype);
  const Value x = body.cast(body.load_if(input, windows.input_index(), windows.inside(), lowest),
                            compute_dtype(dtype));
  // Of equal elements the first counts; what lies outside comes after all others.
  const Value outside = body.constant(std::numeric_limits<std::int64_t>::max(), ScalarType::Long);
  const Value position =
      where(body.condition(windows.inside()), body.index(windows.flat_position()), outside);
  const Value largest = body.reduce(Op::reduce_max, x);
  const Value first = body.reduce_position(Op::reduce_argmax, x, position);
  // Of NaNs the last counts. Nothing outside is one, so that its position may be cut off.
  const ScalarType narrow = windows.image_elements() <= std::numeric_limits<std::int32_t>::max()
                                ? ScalarType::Int
                                : ScalarType::Long;
  const Value none = body.constant(-1, narrow);
  const Value nan = where(apply(Op::isnan, x), body.cast(position, narrow), none);
  const Value last_nan = body.reduce(Op::reduce_max, nan);
  body.begin_pass();
  body.store(call.result(0), largest);
  const Value has_nan = last_nan > body.constant(-1, narrow);
  body.store(call.result(1), where(has_nan, body.cast(last_nan, ScalarType::Long), first));
  return nullptr;
}

// Windows of equal sizes only.
template <std::size_t rank>
Refusal adaptive_average_pool(Call& call) {
  const TensorRef input = call.operand(0);
  const ScalarType dtype = call.result_dtype();
  if (!c10::isFloatingType(dtype)) return "not of floating point";
  const std::size_t batch = input.sizes.size() - rank;
  Sizes kernel;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t size = call.result_sizes()[batch + i];
    if (size == 0 || input.sizes[batch + i] % size != 0) return "windows of different sizes";
    kernel.push_back(input.sizes[batch + i] / size);
  }
  const Windows windows(input, rank, kernel, kernel, Sizes(rank, 0), Sizes(rank, 1));
  Body& body = call.pointwise();
  body.begin_pass(windows.inner());
  const Value x = load_as(body, input, windows.input_index(), dtype);
  const Value sum = body.reduce(Op::reduce_sum, x);
  body.begin_pass();
  body.store(call.result(), sum / static_cast<double>(element_count(kernel)));
  return nullptr;
}

}  // namespace

LoweringTable pooling_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::_adaptive_avg_pool2d", "pooling", adaptive_average_pool<2>},
      {"aten::_adaptive_avg_pool3d", "pooling", adaptive_average_pool<3>},
      {"aten::avg_pool2d", "pooling", average_pool<2>},
      {"aten::avg_pool3d", "pooling", average_pool<3>},
      {"aten::max_pool2d_with_indices", "pooling", max_pool<2>},
      {"aten::max_pool3d_with_indices", "pooling", max_pool<3>},
  });
  return kRows;
}

}  // namespace assay::kernels
