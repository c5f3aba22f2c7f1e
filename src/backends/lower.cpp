#include "backends/lower.h"

#include "aten/record_calls.h"
#include "aten/runner.h"
#include "backends/fault.h"
#include "backends/node_cursor.h"

namespace assay::backends {

Lowered lower(const Subject& subject) {
  const FaultsAsleepScope trial_run;
  const aten::GraphRunner runner(*subject.graph, subject.source);
  NodeCursor cursor(*subject.graph);
  aten::RecordCallsOptions options;
  options.name = subject.graph->name();
  for (const graph::Node* node : std::as_const(*subject.graph).placeholders()) {
    options.input_names.push_back(node->name());
  }
  options.stack = [&] {
    return cursor.current() == nullptr ? graph::StackTrace() : cursor.current()->meta.stack;
  };
  const auto stage = graph::record_stage(*subject.graph);
  options.listener = [&](graph::Node& node) {
    if (cursor.current() != nullptr) node.meta.provenance = {stage, {cursor.current()->id()}};
  };
  aten::RecordedCalls captured = aten::record_calls(
      [&](const std::vector<aten::Value>& inputs) {
        return runner.run(
            inputs, [&](const graph::Node& node, const aten::Value&) { cursor.finish(node); });
      },
      subject.inputs, options);
  Lowered lowered;
  lowered.graph = std::move(captured.graph);
  for (at::Tensor& tensor : captured.tensors) {
    lowered.captured.emplace_back(c10::IValue(std::move(tensor)));
  }
  return lowered;
}

}  // namespace assay::backends
