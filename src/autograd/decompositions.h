/// \file Operators rewritten into simpler ones: what `gelu` is in terms of mul, erf and add.
///
/// While a program is traced below autograd, the recorder looks every operator up here and, where
/// there is a row, runs the row's kernel in the operator's place, so that the graph holds few kinds
/// of nodes and the kernels that are made of it can be fused. Themes have a file each in
/// decompositions/.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

#include <span>
#include <string_view>

namespace assay::autograd {

struct Decomposition {
  std::string_view op;    ///< `aten::gelu`; with an overload `aten::var.correction`.
  std::string_view into;  ///< The operators it may become, e.g. `add, erf, mul`.
  /// Takes and returns what the operator does. It is functional and does not look at the values of
  /// tensors, only at dtypes, sizes, strides and other arguments.
  c10::KernelFunction kernel;
  /// Not for integers and bools, for which the operator has no kernel (or one that raises): it must
  /// be called, to say so.
  bool is_of_floats = false;
  /// Its result has the strides of the first tensor: only if that one's elements lie side by side,
  /// since no operator that it may become leaves gaps.
  bool is_of_dense = false;
  /// Not for images with their channels last: reductions over groups of channels would go through
  /// memory in short strides, and ATen has a kernel for them.
  bool is_of_planes = false;
};

/// Every decomposition, sorted by name; `assay` lists it.
std::span<const Decomposition> decompositions();

/// The decomposition of an operator, or nullptr.
const Decomposition* find_decomposition(const c10::OperatorName& name);

/// True if the row may be used for these arguments: every tensor among them is dense, neither
/// complex nor quantised, and no negation is pending on it. Other calls must stay as they are.
bool can_decompose(const Decomposition& row, std::span<const c10::IValue> arguments);

}  // namespace assay::autograd
