/// \file One call of the graph as a lowering sees it: its arguments by position in the operator's
/// schema, its results, and the kernels that are written for it.
///
/// Before a lowering is asked, kernels/lower.cpp has checked that all tensors have layouts without
/// symbols and dtypes of kernels, and that no number is computed by the graph.
#pragma once

#include <ATen/core/function_schema.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernels/ir.h"
#include "kernels/lower.h"
#include "kernels/lowerings/body.h"

namespace assay::kernels {

/// What a node's value is in the loop program: one tensor, several, or something else.
struct Lowered {
  std::optional<TensorRef> tensor;
  /// Of a node with several results; those that are not tensors are empty.
  std::vector<std::optional<TensorRef>> items;
};
using LoweredNodes = std::unordered_map<const graph::Node*, Lowered>;

class Call {
 public:
  Call(const graph::Node& node, const c10::FunctionSchema* schema, const LoweredNodes& nodes,
       LoopProgram& program);

  const graph::Node& node() const { return node_; }

  // Arguments. A position that the caller left out has the schema's default.

  bool is_none(std::size_t position) const;
  /// Nothing if the argument is a number or None.
  std::optional<TensorRef> tensor(std::size_t position) const;
  /// The argument, which must be a tensor.
  TensorRef operand(std::size_t position) const;
  /// Of a list of tensors; None gives an empty entry.
  std::vector<std::optional<TensorRef>> tensors(std::size_t position) const;
  c10::Scalar number(std::size_t position) const;
  std::optional<c10::Scalar> optional_number(std::size_t position) const;
  std::int64_t integer(std::size_t position) const { return number(position).to<std::int64_t>(); }
  double floating(std::size_t position) const { return number(position).toDouble(); }
  bool flag(std::size_t position) const { return number(position).to<std::int64_t>() != 0; }
  /// Empty for None. A lone number is a list of one.
  Sizes integers(std::size_t position) const;
  std::vector<double> floats(std::size_t position) const;
  std::vector<bool> flags(std::size_t position) const;
  std::string text(std::size_t position) const;

  // Results.

  std::size_t result_count() const { return layouts_.size(); }
  bool has_result(std::size_t number) const { return layouts_[number].has_value(); }
  c10::ScalarType result_dtype(std::size_t number = 0) const { return layouts_[number]->dtype; }
  const Sizes& result_sizes(std::size_t number = 0) const { return layouts_[number]->sizes; }
  /// The tensor that the lowering must write; its buffer is made at the first question.
  TensorRef result(std::size_t number = 0);
  /// A tensor that only this call's kernels use.
  TensorRef temporary(c10::ScalarType dtype, const Sizes& sizes);
  /// Lets result `number` share the memory of `ref`: it is one of the call's own tensors.
  void set_result(std::size_t number, TensorRef ref) { results_[number] = std::move(ref); }

  // Kernels.

  Body& kernel(Sizes outer);
  /// A kernel with the dimensions of the first result.
  Body& pointwise() { return kernel(result_sizes()); }
  /// The argument for arithmetic in `dtype` (or float, for half and bfloat16): a tensor is loaded
  /// and rounded to `dtype`; a number is taken as it is, as kernels of ATen do that are given one.
  Value value(Body& body, std::size_t position, c10::ScalarType dtype) const;
  /// The same with a number rounded to `dtype`, for operators that make a tensor of it first.
  Value rounded_value(Body& body, std::size_t position, c10::ScalarType dtype) const;
  /// The same with neither a number nor a lone element rounded, which ATen's products and quotients
  /// read as a float if it is on the right.
  Value factor(Body& body, std::size_t position, c10::ScalarType dtype) const;

  /// What was made; for kernels/lower.cpp, after the lowering agreed.
  Lowered finish();

 private:
  struct ResultLayout {
    c10::ScalarType dtype;
    Sizes sizes;
    Sizes strides;
  };
  const graph::Argument* argument(std::size_t position) const;
  const c10::IValue& default_value(std::size_t position) const;

  const graph::Node& node_;
  const c10::FunctionSchema* schema_;
  const LoweredNodes& nodes_;
  LoopProgram& program_;
  std::vector<std::optional<ResultLayout>> layouts_;
  std::vector<std::optional<TensorRef>> results_;
  std::deque<Body> bodies_;
};

/// A number as `dtype` holds it, for arithmetic.
Value rounded_constant(Body& body, const c10::Scalar& number, c10::ScalarType dtype);
/// A result of arithmetic as a tensor of `dtype` would hold it: what eager's next kernel sees.
Value rounded(Value value, c10::ScalarType dtype);

/// Loads a tensor for arithmetic in `dtype`: rounded to it, then cast to what it is computed in.
Value load_as(Body& body, const TensorRef& ref, c10::ScalarType dtype);
Value load_as(Body& body, const TensorRef& ref, const Index& index, c10::ScalarType dtype);

/// The common dtype of some arguments by ATen's rules: tensors with dimensions count before those
/// without, and those before numbers.
c10::ScalarType promoted_dtype(const Call& call, std::initializer_list<std::size_t> positions);

}  // namespace assay::kernels
