#include "repro/debug_reporter.h"

#include "aten/failure.h"
#include "repro/accuracy_error.h"
#include "repro/warn.h"

namespace assay::repro {

namespace {

std::string current_message() { return aten::describe_exception().message; }

}  // namespace

DebugReporter::DebugReporter(DebugConfig config, std::shared_ptr<const graph::Graph> graph,
                             Stage stage, std::shared_ptr<const CompileContext> context,
                             std::string role)
    : config_(std::move(config)),
      graph_(std::move(graph)),
      stage_(stage),
      context_(std::move(context)),
      role_(std::move(role)),
      may_change_inputs_(may_change_inputs(*graph_)) {}

bool DebugReporter::is_wanted() const {
  return current_debug_config().repro_after == config_.repro_after;
}

Snapshot DebugReporter::remember(const std::vector<aten::Value>& inputs) const {
  return take_snapshot(*graph_, inputs, may_change_inputs_);
}

Failure DebugReporter::describe(const Snapshot& inputs) const {
  return {*graph_, inputs, stage_, context_->backend, context_->send_backend, role_};
}

void DebugReporter::before_run(const Snapshot& inputs) const {
  if (config_.repro_level == 3) dump_before_run(config_, describe(inputs));
}

void DebugReporter::failed(const Snapshot& inputs) const {
  Failure failure = describe(inputs);
  failure.message = current_message();
  warn(stage_ == Stage::after_dynamo
           ? "Compiled Fx GraphModule failed. Creating script to minify the error."
           : "The compiled " + role_ + " graph failed. Creating script to minify the error.");
  dump_failure(config_, failure);
}

void DebugReporter::is_inaccurate(const Snapshot& inputs, const std::string& difference) const {
  Failure failure = describe(inputs);
  failure.message = difference;
  failure.accuracy = true;
  warn(stage_ == Stage::after_dynamo
           ? "Accuracy failed for the TorchDynamo produced graph. Creating script to minify the "
             "error."
           : "Accuracy failed for the AOT Autograd graph (" + role_ + ")");
  dump_failure(config_, failure);
  throw AccuracyError(difference);
}

}  // namespace assay::repro
