/// \file The backends by name: what turns a captured graph into something that runs it.
///
/// One table (backends/table.cpp) serves `assay backends`, `assay run --backend`,
/// `assay::compile` and the Python package.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aten/value.h"
#include "autograd/program.h"
#include "graph/graph.h"
#include "graph/python_lexer.h"

namespace assay::backends {

class FaultInjector;

/// Puts something around the compiler of a program's halves.
using CompilerWrapper = std::function<autograd::GraphCompiler(autograd::GraphCompiler compiler)>;

/// What is to be compiled: a captured graph, and the inputs of its first call. The inputs are not
/// changed by compiling.
struct Subject {
  std::shared_ptr<const graph::Graph> graph;
  std::vector<aten::Value> inputs;  ///< One per placeholder.
  /// The text the graph was read from, for messages; may be null. Must outlive the compiled graph.
  const graph::python::Source* source = nullptr;
  /// Faults for the graphs that are made of this one, where it has none itself; set by compile().
  FaultInjector* faults = nullptr;
  /// For backends that differentiate ahead of time: put around the compiler they give the halves to
  /// (repro/debug.h). Faults are then the compiler's, not the captured graph's, where it can be.
  CompilerWrapper wrap_compiler = {};
};

/// One call of the compiled graph: a value per placeholder in, the graph's result out.
using Callable = std::function<aten::Value(std::vector<aten::Value>)>;

struct Backend {
  std::string_view name;
  std::string_view description;  ///< One line.
  /// `debug`: for finding faults; `testing`: has a fault built in; none: for everyday use.
  std::vector<std::string_view> tags;
  Callable (*compile)(const Subject& subject);
};

/// Every backend, in the order in which the guide tries them.
std::span<const Backend> all_backends();

/// The backend of that name. Throws `UserError` with the nearest names if there is none.
const Backend& find_backend(std::string_view name);

/// Compiles with the named backend: timed, logged, and with the faults that are being injected
/// (backends/fault.h).
Callable compile(std::string_view backend, const Subject& subject);

}  // namespace assay::backends
