/// \file A compiled Python function: `assay._C.CompiledFunction`, and what `assay._C.FastCall`
/// calls.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aten/record_calls.h"
#include "frontend/compiled_function.h"
#include "graph_handle.h"

namespace assay::binding {

class FunctionHandle {
 public:
  /// `backend` is a name or a callable (python_backend.h).
  FunctionHandle(pybind11::function function, pybind11::function recorded_as,
                 const pybind11::object& backend, const BackendOptions& backend_options,
                 const std::string& name, bool fallback, std::optional<std::size_t> cache_limit);
  /// The same for a graph's text.
  FunctionHandle(const std::string& graph, const pybind11::object& backend,
                 const BackendOptions& backend_options, bool fallback,
                 std::optional<std::size_t> cache_limit);

  /// The same for a graph that may hold tensors; it is called with one value per placeholder.
  FunctionHandle(const GraphHandle& graph, const pybind11::object& backend,
                 const BackendOptions& backend_options, const std::string& name, bool fallback,
                 std::optional<std::size_t> cache_limit);

  /// Where an operator of a compiled graph raises, `eager` is called with the same arguments, and
  /// what it raises is raised instead: the exception that a user of eager knows.
  void raise_as(pybind11::object eager) { raise_as_ = std::move(eager); }

  /// Compiles for such arguments without running the function.
  void prepare(const pybind11::args& args);
  pybind11::object call(const pybind11::args& args);
  /// The same without building Python containers, where every argument is a tensor or a number;
  /// nothing otherwise.
  std::optional<pybind11::object> try_fast_call(std::span<PyObject* const> args);

  std::vector<std::string> graphs() const;

 private:
  FunctionHandle(
      std::pair<std::shared_ptr<const graph::Graph>, std::vector<at::Tensor>> graph_and_tensors,
      frontend::FunctionOptions options);
  pybind11::object run(std::span<c10::IValue> inputs, std::span<PyObject* const> args);

  frontend::CompiledFunction function_;
  pybind11::object eager_;  ///< With fallback: what runs arguments that only Python can hold.
  pybind11::object raise_as_;
};

/// A Python function as something that can be recorded, and the options that record it.
aten::Function wrap_function(pybind11::function function);
aten::RecordCallsOptions record_options();

}  // namespace assay::binding
