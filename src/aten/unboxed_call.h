/// \file Operators with the commonest signatures, called without the boxing of their arguments: a
/// tenth of the time of a small operator. Internal to the runner.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Scalar.h>

#include <optional>
#include <variant>

namespace assay::aten {

using UnaryOperator = c10::TypedOperatorHandle<at::Tensor(const at::Tensor&)>;
using BinaryOperator = c10::TypedOperatorHandle<at::Tensor(const at::Tensor&, const at::Tensor&)>;
/// `add` and `sub`, with their `alpha`.
using ScaledBinaryOperator =
    c10::TypedOperatorHandle<at::Tensor(const at::Tensor&, const at::Tensor&, const c10::Scalar&)>;
using UnboxedOperator =
    std::variant<std::monostate, UnaryOperator, BinaryOperator, ScaledBinaryOperator>;

/// For `add`, `sub` and `mul` of a tensor and a number (`x + 1`): the number as TensorIterator
/// casts it for a float32 tensor, which it would do in every call, at a third of the call's time.
/// Undefined for other operators and other constants.
at::Tensor float_constant(const c10::OperatorHandle& op, const c10::IValue& second);

/// The operator by its signature; nothing if that is another one, or it writes to its arguments.
UnboxedOperator find_unboxed(const c10::OperatorHandle& op);

}  // namespace assay::aten
