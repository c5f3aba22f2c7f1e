/// \file What the process of a trial says about itself while it still can.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "assay/stage.h"
#include "graph/graph.h"

namespace assay::sandbox {

/// Sends pieces of the report, JSON objects, through the pipe. Later pieces add to earlier ones.
class ReportPipe {
 public:
  explicit ReportPipe(int pipe) : pipe_(pipe) {}

  int descriptor() const { return pipe_; }
  void send(const nlohmann::json& piece) const;
  /// Said before each step, so that a crash has a stage.
  void stage(Stage stage) const;

 private:
  int pipe_;
};

/// From now on a deadly signal, and the SIGTERM that comes at a limit, first sends the node that
/// was being run (aten/current_node.h) and the call of `graph` it was made of, then ends the
/// process as it would have.
void report_node_on_signals(int pipe, const graph::Graph& graph);

/// The same for people, on standard error: "Segmentation fault in relu (torch.relu)".
void print_node_on_signals(const graph::Graph& graph);

}  // namespace assay::sandbox
