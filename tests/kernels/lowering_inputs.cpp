#include <ATen/Functions.h>

#include <cmath>
#include <limits>

#include "lowering_samples.h"

namespace assay::kernels {

namespace {

at::Tensor laid_out(const at::Tensor& tensor, SampleLayout layout) {
  if (layout == SampleLayout::transposed && tensor.dim() > 1) {
    return tensor.transpose(0, -1).contiguous().transpose(0, -1);
  }
  if (layout == SampleLayout::gapped && tensor.dim() > 0) {
    auto sizes = tensor.sizes().vec();
    sizes.back() = 2 * sizes.back() + 1;
    at::Tensor wide = at::zeros(sizes, tensor.options());
    at::Tensor gapped = wide.slice(-1, 1, sizes.back(), 2);
    return gapped.copy_(tensor);
  }
  return tensor;
}

at::Tensor drawn(at::IntArrayRef sizes, at::ScalarType dtype) {
  if (at::isFloatingType(dtype)) return at::randn(sizes, at::kDouble).mul(3).to(dtype);
  if (dtype == at::kBool) return at::rand(sizes).lt(0.5);
  return at::randint(dtype == at::kByte ? 0 : -9, 10, sizes, at::kLong).to(dtype);
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> sample_inputs(at::ScalarType dtype,
                                                              SampleLayout layout) {
  const double infinity = std::numeric_limits<double>::infinity();
  at::Tensor edge = at::tensor(
      {0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, 1e4, infinity, -infinity, std::nan("")},
      at::kDouble);
  if (!at::isFloatingType(dtype)) {
    edge = at::tensor({0, 1, 2, 3, 5, 9, 10, 31, 64, 100, 127, 1}, at::kLong);
  }
  at::Tensor unit = at::rand({4, 6}, at::kDouble).mul(0.98).add(0.01);
  if (!at::isFloatingType(dtype)) unit = at::randint(1, 4, {4, 6}, at::kLong);
  std::vector<std::pair<std::string, at::Tensor>> inputs{
      {"x", drawn({4, 6}, dtype)},
      {"y", drawn({4, 6}, dtype)},
      {"row", drawn({6}, dtype)},
      {"col", drawn({4, 1}, dtype)},
      {"one", drawn({}, dtype)},
      {"cube", drawn({2, 3, 4}, dtype)},
      {"image", drawn({2, 3, 6, 4}, dtype)},
      {"holes", at::isFloatingType(dtype)
                    ? at::rand({1, 2, 5, 5}).mul(4).floor().div(0).mul(-1).to(dtype)
                    : drawn({1, 2, 5, 5}, dtype)},
      {"volume", drawn({1, 2, 3, 4, 2}, dtype)},
      {"empty", drawn({0, 6}, dtype)},
      {"unit", unit.to(dtype)},
      {"edge", edge.to(dtype)},
      {"mask", drawn({4, 6}, at::kBool)},
      {"labels", at::randint(0, 4, {4, 6}, at::kLong)},
      {"wrapped", at::randint(-4, 4, {4}, at::kLong)},
      {"near", at::randint(0, 4, {4}, at::kLong)},
      {"few", at::randint(0, 7, {2, 3}, at::kLong)},
      {"single", drawn({4, 6}, at::kFloat)},
  };
  for (auto& [name, tensor] : inputs) tensor = laid_out(tensor, layout);
  return inputs;
}

double tolerance(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return 1e-12;
    case at::kFloat:
      return 2e-6;
    // Where eager rounds in between, we may be closer to the truth.
    case at::kHalf:
      return 4e-3;
    case at::kBFloat16:
      return 2e-2;
    default:
      return 0;
  }
}

std::vector<at::ScalarType> dtypes_of(SampleDtypes dtypes) {
  switch (dtypes) {
    case SampleDtypes::all:
      return {at::kFloat, at::kDouble, at::kHalf,  at::kBFloat16, at::kBool,
              at::kByte,  at::kChar,   at::kShort, at::kInt,      at::kLong};
    case SampleDtypes::floats:
      return {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
    case SampleDtypes::integers:
      return {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong};
    case SampleDtypes::none:
      return {at::kFloat};
  }
  return {};
}

}  // namespace assay::kernels
