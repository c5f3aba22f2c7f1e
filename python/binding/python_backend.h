/// \file Custom backends written in Python: any callable `backend(gm, example_inputs)` as a
/// backend of ours (assay/backend.h).
///
/// It gets a torch.fx.GraphModule that returns a tuple, as Dynamo's do, and returns a callable that
/// takes the graph's inputs and returns its results. An exception while compiling becomes
/// assay.BackendCompilerFailed, one that the returned callable raises stays as it is.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "assay/backend.h"

namespace assay::binding {

struct PythonBackendOptions {
  std::vector<std::string> tags = {};
  /// Called with the GIL held for each graph: what becomes `gm.compile_subgraph_reason`, or None.
  std::function<pybind11::object(const CompileRequest&)> compile_subgraph_reason = {};
};

/// The backend; it is not registered.
std::shared_ptr<const Backend> python_backend(pybind11::object callable, std::string name,
                                              PythonBackendOptions options = {});

/// What a user passes as `backend=`: the name of a registered backend, or a callable, which gets
/// its name from what Python calls it. Throws `UserError` for anything else.
std::shared_ptr<const Backend> backend_from(const pybind11::object& backend,
                                            PythonBackendOptions options = {});

/// The names of all functions that a graph and its subgraphs call.
std::set<std::string> function_names(const graph::Graph& graph);

void add_python_backends(pybind11::module_& module);

}  // namespace assay::binding
