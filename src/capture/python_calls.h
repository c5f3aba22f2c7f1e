/// \file Calls of Python in a graph, as operators: `assay_python::call(number, tensors)`, and
/// `call_one` where a single tensor is returned, `change` for arrays that are changed. Each run
/// makes the call that has the number, with these tensors among its arguments. Used by the recorder
/// for what cannot be recorded as operators, such as gradients that are written in Python and
/// transforms of functions.
#pragma once

#include <Python.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capture/arrays.h"
#include "capture/ref.h"

namespace assay::capture {

inline constexpr const char* kPythonCall = "torch.ops.assay_python.call.default";
inline constexpr const char* kPythonExpect = "torch.ops.assay_python.expect.default";
inline constexpr const char* kPythonChange = "torch.ops.assay_python.change.default";
inline constexpr const char* kPythonCallOne = "torch.ops.assay_python.call_one.default";

/// How each run makes an object that the call needs.
struct PythonArgument {
  enum class Kind : std::uint8_t {
    object,    ///< This very one.
    tensor,    ///< The one at `index` among the node's tensors, in its `form`.
    tuple,     ///< Of `parts`.
    list,      ///< Of `parts`.
    slice,     ///< Start, stop, step.
    dict,      ///< Keys and values in turn.
    function,  ///< Like `object`; parts: defaults, keyword defaults, dict, contents of its cells.
    method,    ///< Function, receiver.
    partial,   ///< Function, tuple of arguments, dict of keywords.
    nothing,   ///< Of a cell: empty.
  };
  Kind kind = Kind::object;
  Ref object;
  std::size_t index = 0;
  TensorForm form = TensorForm::tensor;
  std::vector<PythonArgument> parts;
};

struct PythonCall {
  PythonArgument callable;
  std::vector<PythonArgument> arguments;
  Ref names;  ///< Of the last arguments, or null.
  /// A tensor that the recorded call returned, or an array.
  struct Result {
    c10::ScalarType dtype;
    bool requires_grad;
    std::vector<std::int64_t> sizes;
    TensorForm form = TensorForm::tensor;
    std::vector<std::int64_t> strides = {};  ///< Of an array.
  };
  std::vector<Result> results;
  bool results_vary = false;     ///< In size.
  bool returns_nothing = false;  ///< What it returns is not looked at.
  bool is_of_arrays = false;     ///< A function of NumPy, or of torch that is given an array.
};

/// Whether a call of Python has given something else than when it was recorded, in this thread and
/// since this was asked: the segment does not fit.
bool has_misfit();

/// Its number, for the life of the process: a graph may live as long.
std::int64_t add_python_call(PythonCall call);

/// The tensors in what a call returned, which may be in tuples, lists and dicts. False: there are
/// other objects than these and None.
bool tensors_of_result(PyObject* result, std::vector<PyObject*>& tensors, int depth = 0);

}  // namespace assay::capture
