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

#include "graph/provenance.h"
#include "graph/size_expr.h"
#include "graph/stack_trace.h"

namespace assay::graph {

struct TensorMeta {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<SizeExpr> sizes;
  std::vector<SizeExpr> strides;
  SizeExpr storage_offset;  ///< In elements.
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

/// What a placeholder is given by the caller.
enum class InputRole {
  ordinary,
  tangent,  ///< In a joint graph and its backward half: the gradient of a forward output.
};

struct NodeMeta {
  ValueMeta value;
  StackTrace stack;
  Provenance provenance;
  InputRole role = InputRole::ordinary;  ///< Of a placeholder.
  /// Where the node stands in the text it was parsed from, for messages; not part of equality.
  std::optional<std::size_t> text_offset;

  bool operator==(const NodeMeta& other) const {
    return value == other.value && stack == other.stack && provenance == other.provenance &&
           role == other.role;
  }
};

}  // namespace assay::graph
