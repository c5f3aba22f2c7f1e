#include "aten/functions/tensor_from_data.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/DefaultDtype.h>

#include <cmath>

#include "assay/error.h"
#include "aten/functions/operand.h"

namespace assay::aten {

namespace {

at::ScalarType default_dtype() { return c10::typeMetaToScalarType(c10::get_default_dtype()); }

at::Scalar number_in(const Value& value, at::ScalarType target) {
  if (value.is_number()) return value.leaf.toScalar();
  const at::Tensor tensor = tensor_of(value);
  if (tensor.dim() != 0) {
    throw NeedsPythonError(
        "a tensor from a list of tensors that are not 0-dim needs a Python process",
        "use torch.stack, which accepts tensors of any shape");
  }
  if (tensor.is_floating_point() && c10::isIntegralType(target, true)) {
    throw UserError("only integer tensors of a single element can be converted to an index");
  }
  return tensor.item();
}

// Python's nesting: sizes from the first items, then every list must agree with them.
std::vector<std::int64_t> sizes_of(const Value& data) {
  std::vector<std::int64_t> sizes;
  Value level = data;
  while (holds_sequence(level)) {
    const std::vector<Value> items = unpack(level);
    sizes.push_back(static_cast<std::int64_t>(items.size()));
    if (items.empty()) break;
    level = items.front();
  }
  return sizes;
}

void flatten(const Value& data, const std::vector<std::int64_t>& sizes, std::size_t dim,
             at::ScalarType target, std::vector<at::Scalar>& numbers) {
  if (dim == sizes.size()) {
    numbers.push_back(number_in(data, target));
    return;
  }
  if (!holds_sequence(data)) throw UserError("not a sequence at dim " + std::to_string(dim));
  const std::vector<Value> items = unpack(data);
  if (static_cast<std::int64_t>(items.size()) != sizes[dim]) {
    throw UserError("expected sequence of length " + std::to_string(sizes[dim]) + " at dim " +
                    std::to_string(dim) + " (got " + std::to_string(items.size()) + ")");
  }
  for (const Value& item : items) flatten(item, sizes, dim + 1, target, numbers);
}

// Python turns a number into a C double (or long) before the dtype's own rounding.
template <typename T>
T stored(const at::Scalar& number) {
  if constexpr (std::is_same_v<T, bool>) {
    return number.isComplex() ? number.toComplexDouble() != c10::complex<double>(0)
                              : number.toDouble() != 0;
  } else if constexpr (c10::is_complex<T>::value) {
    return static_cast<T>(number.toComplexDouble());
  } else {
    if (number.isComplex()) throw UserError("must be real number, not complex");
    if constexpr (std::is_integral_v<T>) {
      return number.isFloatingPoint() ? at::Scalar(std::trunc(number.toDouble())).to<T>()
                                      : number.to<T>();
    } else {
      return c10::convert<T, double>(number.toDouble());
    }
  }
}

template <typename T>
void store(const std::vector<at::Scalar>& numbers, void* data) {
  T* out = static_cast<T*>(data);
  for (const at::Scalar& number : numbers) *out++ = stored<T>(number);
}

}  // namespace

at::ScalarType infer_dtype(const Value& data) {
  if (holds_sequence(data)) {
    std::optional<at::ScalarType> widest;
    for (const Value& item : unpack(data)) {
      const at::ScalarType dtype = infer_dtype(item);
      widest = widest ? c10::promoteTypes(*widest, dtype) : dtype;
    }
    return widest.value_or(default_dtype());
  }
  if (data.is_tensor()) return data.leaf.toTensor().scalar_type();
  if (data.is_bool()) return at::kBool;
  if (data.is_int()) return at::kLong;
  if (data.is_float()) return default_dtype();
  if (data.is_number()) return c10::toComplexType(default_dtype());
  throw UserError("a tensor cannot hold a value of type " + type_name(data));
}

at::Tensor tensor_from_data(const Value& data, std::optional<at::ScalarType> dtype) {
  const at::ScalarType target = dtype.value_or(infer_dtype(data));
  const std::vector<std::int64_t> sizes = sizes_of(data);
  std::vector<at::Scalar> numbers;
  flatten(data, sizes, 0, target, numbers);
  at::Tensor tensor =
      at::detail::empty_cpu(sizes, target, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  void* out = tensor.mutable_data_ptr();
  AT_DISPATCH_V2(target, "tensor_from_data", AT_WRAP([&] { store<scalar_t>(numbers, out); }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                 at::kBool, at::kHalf, at::kBFloat16);
  return tensor;
}

}  // namespace assay::aten
