#include "aten/functions/prims_pooling.h"

#include "aten/functions/operand.h"
#include "aten/functions/python_numbers.h"

namespace assay::aten {

namespace {

using Sizes = std::vector<std::int64_t>;
using Tensors = std::vector<at::Tensor>;

at::Tensor floor_divide(const at::Tensor& tensor, std::int64_t divisor) {
  return run_tensor("aten::floor_divide", {tensor, divisor});
}

// A position in a flat window as one position per dimension.
Tensors unflattened(at::Tensor position, const Sizes& sizes) {
  Tensors positions;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const std::int64_t inner = product_of_sizes(at::IntArrayRef(sizes).slice(i + 1));
    const at::Tensor outer = floor_divide(position, inner);
    position = position.sub(outer.mul(inner));
    positions.push_back(outer);
  }
  positions.push_back(position);
  return positions;
}

at::Tensor flattened(const Tensors& positions, const Sizes& sizes) {
  at::Tensor flat = positions[0];
  for (std::size_t i = 1; i < positions.size(); ++i) flat = flat.mul(sizes[i]).add(positions[i]);
  return flat;
}

// Where every window begins in the input along one of the last `dims` dimensions.
at::Tensor window_starts(const at::Tensor& windows, std::size_t dim, const Sizes& stride,
                         const Sizes& padding) {
  const auto from_end = static_cast<std::int64_t>(dim) - static_cast<std::int64_t>(stride.size());
  Sizes shape(static_cast<std::size_t>(windows.dim()), 1);
  shape[static_cast<std::size_t>(windows.dim() + from_end)] = -1;
  const at::Tensor index = run_tensor("aten::arange", {windows.size(from_end)},
                                      {{"dtype", at::kLong}, {"device", windows.device()}});
  return index.view(shape).mul(stride[dim]).sub(padding[dim]);
}

struct Window {
  explicit Window(const BoundArguments& arguments)
      : kernel(integers_of(arguments["kernel_size"])),
        stride(integers_of(arguments["stride"])),
        padding(integers_of(arguments["padding"])),
        dilation(integers_of(arguments["dilation"])) {
    const std::size_t dims = kernel.size();
    if ((dims != 2 && dims != 3) || stride.size() != dims || padding.size() != dims ||
        dilation.size() != dims) {
      throw UserError("max pooling with offsets takes lists of 2 or 3 numbers");
    }
  }

  Sizes kernel, stride, padding, dilation;
};

}  // namespace

Value max_pool_with_offsets(const BoundArguments& arguments) {
  const Window window(arguments);
  const at::Tensor self = arguments.tensor("self");
  const std::size_t dims = window.kernel.size();
  const char* op = dims == 2 ? "aten::max_pool2d_with_indices" : "aten::max_pool3d_with_indices";
  const Tensors pooled = tensors_of(run(op, {self, window.kernel, window.stride, window.padding,
                                             window.dilation, arguments["ceil_mode"]}));
  if (self.dim() < static_cast<std::int64_t>(dims))
    throw UserError("the input has too few dimensions");
  const Sizes input_size(self.sizes().end() - static_cast<std::ptrdiff_t>(dims),
                         self.sizes().end());
  const Tensors positions = unflattened(pooled[1], input_size);
  Tensors steps;
  for (std::size_t i = 0; i < dims; ++i) {
    const at::Tensor start = window_starts(pooled[1], i, window.stride, window.padding);
    steps.push_back(floor_divide(positions[i].sub(start), window.dilation[i]));
  }
  return tuple_of(
      {Operand(pooled[0]).value, Operand(flattened(steps, window.kernel).to(at::kChar)).value});
}

Value max_pool_offsets_to_indices(const BoundArguments& arguments) {
  const Window window(arguments);
  const at::Tensor offsets = arguments.tensor("self").to(at::kLong);
  const Sizes input_size = integers_of(arguments["input_size"]);
  const Tensors steps = unflattened(offsets, window.kernel);
  if (input_size.size() != steps.size()) throw UserError("input_size has the wrong length");
  Tensors positions;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const at::Tensor start = window_starts(offsets, i, window.stride, window.padding);
    positions.push_back(start.add(steps[i].mul(window.dilation[i])));
  }
  return Operand(flattened(positions, input_size)).value;
}

Value max_pool2d_offsets_to_indices(const BoundArguments& arguments) {
  const at::Tensor offsets = arguments.tensor("self").to(at::kLong);
  const Sizes stride = integers_of(arguments["stride"]);
  const Sizes padding = integers_of(arguments["padding"]);
  if (stride.size() != 2 || padding.size() != 2) {
    throw UserError("max pooling in two dimensions takes lists of 2 numbers");
  }
  const std::int64_t width = arguments.integer("kernel_width");
  const at::Tensor rows = floor_divide(offsets, width);
  const at::Tensor columns = offsets.sub(rows.mul(width));
  const at::Tensor row = window_starts(offsets, 0, stride, padding).add(rows);
  const at::Tensor column = window_starts(offsets, 1, stride, padding).add(columns);
  return Operand(row.mul(arguments.integer("input_width")).add(column)).value;
}

}  // namespace assay::aten
