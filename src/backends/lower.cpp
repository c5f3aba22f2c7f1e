#include "backends/lower.h"

#include "aten/facts.h"
#include "aten/record_calls.h"
#include "aten/runner.h"
#include "backends/fault.h"
#include "backends/node_cursor.h"

namespace assay::backends {

namespace {

const graph::RegisterPass registered(
    {.name = "lower",
     .room = "backends",
     .description = "makes a captured graph a graph of operators, before autograd",
     .is_required = true});

}  // namespace

Lowered lower(const Subject& subject) {
  const auto pass_options = aten::pass_options();
  graph::RunningPass pass("lower", pass_options);
  pass.start_required();
  const FaultsAsleepScope trial_run;
  const aten::GraphRunner runner(*subject.graph, subject.source);
  NodeCursor cursor(*subject.graph);
  aten::RecordCallsOptions options;
  options.name = subject.graph->name();
  for (const graph::Node* node : std::as_const(*subject.graph).placeholders()) {
    options.input_names.push_back(node->name());
  }
  options.stack = [&] {
    return cursor.current() == nullptr ? std::vector<graph::StackFrame>()
                                       : cursor.current()->meta.stack;
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
  const graph::Graph* made[] = {lowered.graph.get()};
  pass.finish(made);
  return lowered;
}

}  // namespace assay::backends
