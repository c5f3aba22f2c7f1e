/// \file The parts of a graph for many sizes that do not depend on them. A language model that
/// generates has another length with every token, but only attention sees it: the rest is compiled
/// once, and sizes that never come again still run mostly compiled. Used by SizedRuns.
///
/// Nothing is inferred: which results have the same sizes for all inputs is observed, and what is
/// compiled of them is guarded.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "assay/compiler.h"
#include "aten/runner.h"
#include "graph/graph.h"

namespace assay::capture {

class FixedParts {
 public:
  /// `graph` has the metadata of the sizes for which it was recorded.
  explicit FixedParts(std::shared_ptr<const graph::Graph> graph);

  /// Runs the graph as it is.
  void run(std::span<c10::IValue> inputs, Outputs& outputs) const { runner_.call(inputs, outputs); }
  /// Runs the graph with other sizes as it is, and notes what they change. From any thread.
  void observe(std::span<c10::IValue> inputs, Outputs& outputs);
  /// Enough sizes were observed to tell.
  bool is_known() const;
  /// The graph with its fixed parts compiled by `compile`; null if they are too small a part of it,
  /// or if it writes to tensors. `request` has the options.
  std::shared_ptr<const CompiledGraph> make(const CompileRequest& request, Compiler compile) const;

 private:
  static constexpr int kObserved = 2;

  std::shared_ptr<const graph::Graph> graph_;
  aten::GraphRunner runner_;
  mutable std::mutex mutex_;
  std::unordered_set<const graph::Node*> varying_;
  std::unordered_map<const graph::Node*, c10::IValue> numbers_;  // as they were first observed
  int observed_ = 0;
};

}  // namespace assay::capture
