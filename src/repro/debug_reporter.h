/// \file What the two debug wrappers (repro/debug.h) have in common: one graph that was given to a
/// compiler, and its runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assay/compiler.h"
#include "aten/value.h"
#include "graph/graph.h"
#include "repro/config.h"
#include "repro/dump.h"

namespace assay::repro {

class DebugReporter {
 public:
  /// `context` is that of the compilation.
  DebugReporter(DebugConfig config, std::shared_ptr<const graph::Graph> graph, Stage stage,
                std::shared_ptr<const CompileContext> context, std::string role);

  const DebugConfig& config() const { return config_; }
  const graph::Graph& graph() const { return *graph_; }

  /// False inside of another watch, and once the configuration no longer asks for it.
  bool is_wanted() const;

  /// The inputs as they are now; copied if the graph may change them.
  Snapshot remember(const std::vector<aten::Value>& inputs) const;
  /// At level 3 writes them down.
  void before_run(const Snapshot& inputs) const;
  /// To be called while an exception is being handled: writes the failure down.
  void failed(const Snapshot& inputs) const;
  /// Writes a difference down, and throws `AccuracyError`.
  [[noreturn]] void is_inaccurate(const Snapshot& inputs, const std::string& difference) const;

 private:
  Failure describe(const Snapshot& inputs) const;

  DebugConfig config_;
  std::shared_ptr<const graph::Graph> graph_;
  Stage stage_;
  std::shared_ptr<const CompileContext> context_;
  std::string role_;
  bool may_change_inputs_;
};

}  // namespace assay::repro
