/// \file A function that is captured and compiled when first called, and again when its guards
/// fail. Behind `assay::compile` (include/assay/compile.h) and `assay.aot.compile`.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "aten/record_calls.h"
#include "aten/value.h"
#include "backends/registry.h"
#include "frontend/guards.h"

namespace assay::frontend {

struct FunctionOptions {
  std::string backend = "aot_eager";
  std::string name = "GraphModule";
  /// Run eagerly, with one warning, what cannot be traced; otherwise that is an error.
  bool fallback = false;
  /// After this many compilations further calls run eagerly, with one warning.
  std::size_t cache_limit = 8;
  /// As in aten::RecordCallsOptions.
  std::function<std::vector<graph::StackFrame>()> stack;
  std::function<std::string()> where;
  std::function<bool(const at::Tensor&)> is_held_elsewhere;
  /// What is run to capture the function, if not the function itself: one that refuses more.
  aten::Function recorded_as;
};

/// Calls may come from several threads; each compilation is done by one of them.
class CompiledFunction {
 public:
  CompiledFunction(aten::Function function, FunctionOptions options);
  /// The same for a graph that was captured before.
  CompiledFunction(std::shared_ptr<const graph::Graph> graph, FunctionOptions options);

  aten::Value call(const std::vector<aten::Value>& inputs);

  /// One per compilation so far, oldest first.
  struct Entry {
    Guards guards;
    std::shared_ptr<const graph::Graph> graph;  ///< What was captured; null if run eagerly.
    std::vector<aten::Value> captured;
    backends::Callable run;  ///< Empty: run the function itself.
    /// A captured parameter may have been frozen or given another shape since.
    std::optional<Guards> captured_guards;
  };
  std::vector<std::shared_ptr<const Entry>> entries() const;

 private:
  std::shared_ptr<const Entry> find(const std::vector<aten::Value>& inputs,
                                    const GlobalState& state) const;
  std::shared_ptr<const Entry> add(const std::vector<aten::Value>& inputs,
                                   const GlobalState& state);
  std::shared_ptr<const Entry> make(const std::vector<aten::Value>& inputs) const;
  aten::Value run(const Entry& entry, const std::vector<aten::Value>& inputs) const;

  aten::RecordedCalls record_for(const std::vector<aten::Value>& inputs) const;

  aten::Function function_;
  std::shared_ptr<const graph::Graph> graph_;  // null for a function
  FunctionOptions options_;
  std::mutex compiling_;
  mutable std::shared_mutex entries_mutex_;
  std::vector<std::shared_ptr<const Entry>> entries_;
  std::atomic<bool> has_warned_ = false;
};

}  // namespace assay::frontend
