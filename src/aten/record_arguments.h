/// \file An operator's arguments as they stand on its stack, turned into a graph's arguments: the
/// inverse of aten/convert.h. Called by the recorder.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <vector>

#include "graph/argument.h"

namespace assay::aten {

/// The positional and keyword arguments of one recorded call.
struct RecordedArguments {
  std::vector<graph::Argument> args;
  std::vector<graph::NamedArgument> kwargs;
};

/// What stands for a tensor in the graph: its node, or a number for a wrapped one.
using TensorArgument = std::function<graph::Argument(const at::Tensor&)>;

/// The number of a tensor that is one in disguise, e.g. the 2 of `x * 2`.
std::optional<graph::Argument> wrapped_number(const at::Tensor& tensor);

/// `stack` holds one value per argument of `schema`. Arguments equal to their defaults are left out
/// as FX does. Throws `TraceError` for what a graph cannot say: a generator, a script object.
RecordedArguments record_arguments(const c10::FunctionSchema& schema,
                                   const std::vector<c10::IValue>& stack,
                                   const TensorArgument& tensor);

}  // namespace assay::aten
