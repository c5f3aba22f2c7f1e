#include "backends/lower.h"

#include "aten/facts.h"
#include "aten/record_calls.h"
#include "aten/runner.h"
#include "backends/fault.h"
#include "backends/node_cursor.h"

namespace assay::backends {

namespace {

const graph::RegisterPass lower_pass(
    {.name = "lower",
     .room = "backends",
     .description = "lowers a captured graph to operators, before autograd",
     .is_required = true});

}  // namespace

CompileRequest lower(const CompileRequest& request) {
  const auto pass_options = aten::pass_options();
  graph::RunningPass pass("lower", pass_options);
  pass.start_required();
  const FaultsAsleepScope trial_run;
  const aten::GraphRunner runner(*request.graph, request.context->source);
  NodeCursor cursor(*request.graph);
  aten::RecordCallsOptions options;
  options.name = request.graph->name();
  for (const graph::Node* node : std::as_const(*request.graph).placeholders()) {
    options.input_names.push_back(node->name());
  }
  options.stack = [&] {
    return cursor.current() == nullptr ? graph::StackTrace() : cursor.current()->meta.stack;
  };
  const auto stage = graph::record_stage(*request.graph);
  options.listener = [&](graph::Node& node) {
    if (cursor.current() != nullptr) node.meta.provenance = {stage, {cursor.current()->id()}};
  };
  std::vector<aten::Value> inputs;
  for (const c10::IValue& input : request.inputs) inputs.push_back(aten::unpack_value(input));
  aten::RecordedCalls recorded = aten::record_calls(
      [&](const std::vector<aten::Value>& values) {
        return runner.run(
            values, [&](const graph::Node& node, const aten::Value&) { cursor.finish(node); });
      },
      inputs, options);
  CompileRequest lowered = request;
  lowered.graph = std::move(recorded.graph);
  for (at::Tensor& tensor : recorded.tensors) lowered.inputs.emplace_back(std::move(tensor));
  lowered.bound_inputs += recorded.tensors.size();
  const graph::Graph* made[] = {lowered.graph.get()};
  pass.finish(made);
  return lowered;
}

}  // namespace assay::backends
