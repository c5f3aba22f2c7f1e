/// \file Ahead-of-time autograd: a captured graph in, a compiled graph that runs its forward and
/// backward out. What the `aot_*` backends have in common.
#pragma once

#include <memory>
#include <vector>

#include "assay/compiler.h"
#include "autograd/compiled_halves.h"
#include "autograd/structure.h"
#include "graph/graph.h"

namespace assay::autograd {

struct AotOptions {
  Partitioner partitioner = &partition_min_cut;
  /// Apply autograd/decompositions.h while tracing.
  bool decompose = false;
  /// Compiles the halves; aten::run_with_aten by default.
  Compiler compiler = {};
  /// As in HalvesOptions.
  bool lazy_backward = false;
};

/// A captured graph traced for one set of input properties, and its compiled halves.
class AotGraph : public CompiledGraph {
 public:
  /// Traces the request's graph with its inputs; numbers are baked in. Throws as autograd::trace,
  /// and `aten::OperatorError` if an operator of the graph raises.
  AotGraph(const CompileRequest& request, const AotOptions& options);

  void call(std::span<c10::IValue> inputs, Outputs& outputs) const override;

  const CompiledHalves& halves() const { return *halves_; }

 private:
  void fill_results(std::span<c10::IValue> tensors, Outputs& outputs) const;

  std::unique_ptr<CompiledHalves> halves_;
  std::vector<Structure> results_;  ///< One per leaf of the captured graph's output.
  bool returns_tensors_ = true;     ///< Each of them is one tensor.
  std::size_t input_count_ = 0;     ///< Of a call: without those that are bound.
  /// Where the halves' inputs come from, in their order: a call's inputs, or `bound_` after them.
  std::vector<std::size_t> tensor_inputs_;
  bool takes_tensors_ = true;  ///< A call's inputs are the halves' inputs.
  std::vector<c10::IValue> bound_;
};

}  // namespace assay::autograd
