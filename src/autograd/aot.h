/// \file Ahead-of-time autograd: a captured graph in, a callable that runs its compiled forward and
/// backward out. What the `aot_*` backends have in common.
#pragma once

#include <memory>
#include <vector>

#include "aten/value.h"
#include "autograd/partition.h"
#include "autograd/program.h"
#include "autograd/structure.h"
#include "graph/graph.h"
#include "graph/python_lexer.h"

namespace assay::autograd {

struct AotOptions {
  Partitioner partitioner = &partition_min_cut;
  /// Apply autograd/decompositions.h while tracing.
  bool decompose = false;
  /// Compiles the halves; nullptr: they are run operator by operator.
  GraphCompiler compiler = {};
};

/// A graph traced for one set of input properties.
class AotProgram {
 public:
  /// Traces `graph` with `inputs` (one per placeholder; numbers are baked in). Throws as
  /// autograd::trace, and `aten::OperatorError` if an operator of the graph raises.
  AotProgram(const graph::Graph& graph, const std::vector<aten::Value>& inputs,
             const AotOptions& options = {}, const graph::python::Source* source = nullptr);

  aten::Value run(const std::vector<aten::Value>& inputs) const;
  const Program& program() const { return *program_; }

 private:
  std::unique_ptr<Program> program_;
  Structure results_;
  std::vector<std::size_t> tensor_inputs_;  ///< Which inputs are tensors.
};

/// Traces a graph, without compiling anything; `results` gets the structure of its results.
JointGraph trace_graph(const graph::Graph& graph, const std::vector<aten::Value>& inputs,
                       Structure& results, bool decompose = false,
                       const graph::python::Source* source = nullptr);

/// Runs a graph operator by operator: the compiler of `aot_eager`.
CompiledGraph run_with_aten(std::shared_ptr<const graph::Graph> graph, GraphRole role);

}  // namespace assay::autograd
