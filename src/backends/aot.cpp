#include "backends/aot.h"

#include "backends/fault.h"

namespace assay::backends {

Callable compile_ahead_of_time(const Subject& subject, const autograd::AotOptions& options) {
  autograd::AotOptions chosen = options;
  if (!chosen.compiler) chosen.compiler = &autograd::run_with_aten;
  if (subject.faults != nullptr) {
    chosen.compiler = [compiler = chosen.compiler, faults = subject.faults](
                          std::shared_ptr<const graph::Graph> graph, autograd::GraphRole role) {
      return compiler(faults->inject(std::move(graph)), role);
    };
  }
  const FaultsAsleep trial_run;
  auto program = std::make_shared<const autograd::AotProgram>(*subject.graph, subject.inputs,
                                                              chosen, subject.source);
  return [program](const std::vector<aten::Value>& inputs) { return program->run(inputs); };
}

}  // namespace assay::backends
