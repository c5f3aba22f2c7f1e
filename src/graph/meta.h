/// \file What is known about the value a node produces, and where in the user's program it is from.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/size_expr.h"

namespace assay::graph {

struct TensorMeta {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<SizeExpr> sizes;
  std::vector<SizeExpr> strides;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  bool requires_grad = false;

  bool operator==(const TensorMeta&) const = default;
};

/// Row-major strides of `sizes`; a dimension of size 0 counts as 1, as in PyTorch.
std::vector<SizeExpr> contiguous_strides(const std::vector<SizeExpr>& sizes);

/// A value: unknown, one tensor, one integer, or several values (an operator with many results).
struct ValueMeta {
  struct Unknown {
    bool operator==(const Unknown&) const = default;
  };
  std::variant<Unknown, TensorMeta, SizeExpr, std::vector<ValueMeta>> value;

  bool known() const { return !std::holds_alternative<Unknown>(value); }
  const TensorMeta* tensor() const { return std::get_if<TensorMeta>(&value); }
  bool operator==(const ValueMeta&) const = default;
};

/// One line of the user's program.
struct StackFrame {
  std::string file;
  std::int64_t line = 0;
  std::string function;
  std::string text;

  bool operator==(const StackFrame&) const = default;
};

struct NodeMeta {
  ValueMeta value;
  std::vector<StackFrame> stack;        ///< Outermost call first.
  std::vector<std::string> provenance;  ///< Names of the earlier stage's nodes this one is made of.
  /// Where the node stands in the text it was parsed from, for messages; not part of equality.
  std::optional<std::size_t> text_offset;

  bool operator==(const NodeMeta& other) const {
    return value == other.value && stack == other.stack && provenance == other.provenance;
  }
};

}  // namespace assay::graph
