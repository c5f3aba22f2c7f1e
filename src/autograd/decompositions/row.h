/// \file One row of a table of decompositions, made from ATen's description of the operator and an
/// ordinary function. A function whose signature is not the operator's does not compile.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "autograd/decompositions.h"

namespace assay::autograd {

// Decompositions run on real tensors, where sizes are plain integers.
template <typename T>
struct Concrete {
  using type = T;
};
template <>
struct Concrete<c10::SymInt> {
  using type = std::int64_t;
};
template <>
struct Concrete<std::optional<c10::SymInt>> {
  using type = std::optional<std::int64_t>;
};
template <>
struct Concrete<c10::SymIntArrayRef> {
  using type = at::IntArrayRef;
};
template <>
struct Concrete<at::OptionalSymIntArrayRef> {
  using type = at::OptionalIntArrayRef;
};
template <typename Result, typename... Parameters>
struct Concrete<Result(Parameters...)> {
  using type = Result(typename Concrete<Parameters>::type...);
};

// `aten::var.correction`, kept as long as the program runs.
template <typename Op>
struct QualifiedName {
  static constexpr std::string_view kName = Op::name;
  static constexpr std::string_view kOverload = Op::overload_name;
  static constexpr std::size_t kSize =
      kName.size() + (kOverload.empty() ? 0 : 1 + kOverload.size());
  static constexpr std::array<char, kSize> kText = [] {
    std::array<char, kSize> text{};
    std::size_t end = 0;
    for (const char c : kName) text[end++] = c;
    if (!kOverload.empty()) text[end++] = '.';
    for (const char c : kOverload) text[end++] = c;
    return text;
  }();
};

/// The row of `Op`, a struct of `at::_ops` (`#include <ATen/ops/gelu_ops.h>`).
template <typename Op>
Decomposition row(std::string_view into, typename Concrete<typename Op::schema>::type* function) {
  constexpr const auto& kText = QualifiedName<Op>::kText;
  return {std::string_view(kText.data(), kText.size()), into,
          c10::KernelFunction::makeFromUnboxedRuntimeFunction(function)};
}

/// A row in a table whose other rows are also used for integers.
template <typename Op>
Decomposition row_of_floats(std::string_view into,
                            typename Concrete<typename Op::schema>::type* function) {
  Decomposition made = row<Op>(into, function);
  made.is_of_floats = true;
  return made;
}

/// A row whose result has the strides of its first argument.
template <typename Op>
Decomposition row_of_dense(std::string_view into,
                           typename Concrete<typename Op::schema>::type* function) {
  Decomposition made = row<Op>(into, function);
  made.is_of_dense = true;
  return made;
}

/// A row that is not for images with their channels last.
template <typename Op>
Decomposition row_of_planes(std::string_view into,
                            typename Concrete<typename Op::schema>::type* function) {
  Decomposition made = row<Op>(into, function);
  made.is_of_planes = true;
  return made;
}

}  // namespace assay::autograd
