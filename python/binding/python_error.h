/// \file Exceptions of Python on their way through C++: the rooms between see what failed, and
/// Python gets its own exception back.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <string>

#include "aten/failure.h"
#include "backends/error.h"

namespace assay::binding {

/// An exception that is raised again as the very same object.
class PythonError : public aten::ProgramError {
 public:
  /// Of the exception that was caught. The GIL must be held.
  explicit PythonError(const pybind11::error_already_set& error);

  /// The exception, with its traceback.
  const pybind11::object& value() const { return *value_; }
  /// Not used: it is raised as itself.
  const char* python_class() const noexcept override { return "Error"; }

 private:
  std::shared_ptr<const pybind11::object> value_;
};

/// A Python backend that failed to compile: raised as assay.BackendCompilerFailed, of which the
/// original exception is the cause.
class PythonBackendError : public backends::BackendError {
 public:
  /// `stack` is where in the user's program the graph is from; it may be empty.
  PythonBackendError(const std::string& backend, const PythonError& cause,
                     const std::string& stack);

  const PythonError& cause() const { return cause_; }
  const std::string& backend() const { return backend_; }

 private:
  PythonError cause_;
  std::string backend_;
};

/// Makes Python see both. To be called after their base classes were registered.
void add_python_errors();

}  // namespace assay::binding
