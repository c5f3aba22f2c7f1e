/// \file Calls of Python in a graph, as an operator: `assay_python::call(number, tensors)`. Each
/// run makes the call that has the number, with these tensors among its arguments. Used by the
/// recorder for what cannot be recorded as operators, such as gradients that are written in Python.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "capture/ref.h"

namespace assay::capture {

inline constexpr const char* kPythonCall = "torch.ops.assay_python.call.default";

struct PythonCall {
  Ref callable;
  std::vector<Ref> arguments;  ///< Null in the places of tensors.
};

/// Its number, for the life of the process: a graph may live as long.
std::int64_t add_python_call(PythonCall call);

}  // namespace assay::capture
