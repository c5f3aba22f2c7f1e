/// \file Compiling with a backend and everything that stands around it. assay/backend.h has the
/// plain form; this one is for the rooms above, which add the debug wrapper, and for commands,
/// trials and tests, which work with Python values.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "assay/backend.h"
#include "aten/value.h"
#include "compare/models.h"
#include "graph/graph.h"

namespace assay::backends {

/// What the caller puts around the compilers of a captured graph and of its halves.
struct Surroundings {
  /// The debug wrapper (repro/debug.h); may be empty.
  CompilerDecorator debug_wrapper = {};
  /// The debug directory (repro/debug_directory.h); may be empty.
  CompilerDecorator debug_directory = {};
  /// Injected faults belong to the compiler of the halves where there is one: whoever watches that
  /// compiler must see it fail, on a graph without the fault.
  bool faults_in_halves = false;
};

/// The backend need not be registered.
std::shared_ptr<const CompiledGraph> compile(const Backend& backend, CompileRequest request,
                                             const Surroundings& surroundings);

/// Compiles `graph` for Python values: one per placeholder in, the nested result out. `source` is
/// the text the graph was read from, for messages; it must outlive the result.
compare::Callable compile_for_values(std::string_view backend,
                                     std::shared_ptr<const graph::Graph> graph,
                                     const std::vector<aten::Value>& inputs,
                                     const graph::python::Source* source = nullptr);

/// The request that compile_for_values makes.
CompileRequest request_for_values(std::shared_ptr<const graph::Graph> graph,
                                  const std::vector<aten::Value>& inputs,
                                  const graph::python::Source* source = nullptr);

/// A compiled graph as a function of Python values.
compare::Callable as_value_function(std::shared_ptr<const CompiledGraph> compiled,
                                    const graph::Graph& graph);

}  // namespace assay::backends
