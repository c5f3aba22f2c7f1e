/// \file A function that is captured and compiled when first called, and again when its guards
/// fail. Behind `assay::compile` (include/assay/compile.h) and `assay.aot.compile`.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/backend.h"
#include "aten/record_calls.h"
#include "aten/result_structure.h"
#include "aten/value.h"
#include "guards/guards.h"

namespace assay::frontend {

struct FunctionOptions {
  std::shared_ptr<const Backend> backend = find_backend(kDefaultBackend);
  BackendOptions backend_options = {};
  std::string name = "GraphModule";
  /// Run eagerly, with one warning, what cannot be traced; otherwise that is an error.
  bool fallback = false;
  /// After this many compilations further calls run eagerly, with one warning. By default the
  /// setting `cache_size_limit`.
  std::optional<std::size_t> cache_limit = std::nullopt;
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
  /// The same for a graph that was captured before. The last placeholders are `bound`, and not
  /// passed to calls.
  CompiledFunction(std::shared_ptr<const graph::Graph> graph, FunctionOptions options,
                   std::vector<at::Tensor> bound = {});

  /// Compiles for such inputs, unless that was done before, without running anything of theirs.
  void prepare(std::span<const c10::IValue> inputs);

  /// One call in the calling convention of assay/compiler.h. Returns how the outputs are nested,
  /// which holds as long as the function lives.
  const aten::ResultStructure& call(std::span<c10::IValue> inputs, Outputs& outputs);

  /// One per compilation so far, oldest first.
  struct Entry {
    guards::Guards guards;
    std::shared_ptr<const graph::Graph> graph = {};  ///< What was captured; null if run eagerly.
    std::vector<c10::IValue> captured = {};
    /// A captured parameter may have been frozen or given another shape since.
    std::optional<guards::Guards> captured_guards = {};
    std::shared_ptr<const CompiledGraph> compiled = {};  ///< Null: run the function itself.
    aten::ResultStructure structure = {};
    bool is_for_other_size = false;  ///< Made because a tensor had another size.
  };
  using Entries = std::vector<std::shared_ptr<const Entry>>;
  const Entries& entries() const { return *entries_.load(std::memory_order_acquire); }

 private:
  const Entry* find(std::span<const c10::IValue> inputs, const guards::GlobalState& state) const;
  const Entry* add(std::span<const c10::IValue> inputs, const guards::GlobalState& state);
  std::shared_ptr<Entry> make(std::span<const c10::IValue> inputs) const;
  /// Of a graph that is right for other sizes too: whether inputs of these sizes come for the first
  /// time. Those that come once do not pay for being compiled.
  bool come_first(std::span<const c10::IValue> inputs, const guards::GlobalState& state);
  /// Whether there may be no further entry for inputs that none fits.
  bool is_full(bool is_for_other_size) const;
  const aten::ResultStructure& run_eagerly(const aten::Function& function,
                                           std::span<c10::IValue> inputs, Outputs& outputs) const;
  aten::RecordedCalls record_for(std::span<const c10::IValue> inputs) const;

  aten::Function function_;
  std::shared_ptr<const graph::Graph> graph_;  // null for a function
  std::vector<at::Tensor> bound_;              // the graph's
  FunctionOptions options_;
  std::mutex compiling_;
  std::deque<guards::Guards> came_once_;
  // Read without a lock by every call. Each compilation makes a longer list; the old ones stay,
  // since a call may be reading them.
  std::vector<std::unique_ptr<const Entries>> lists_;
  std::atomic<const Entries*> entries_;
  std::atomic<bool> has_warned_ = false;
};

}  // namespace assay::frontend
