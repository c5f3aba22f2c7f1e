#include "backends/aot.h"

#include "backends/fault.h"
#include "observe/observe.h"

namespace assay::backends {

namespace {

// As the troubleshooting guide has it: the last step that was begun and not done is at fault.
autograd::GraphCompiler with_steps(autograd::GraphCompiler compiler) {
  return [compiler = std::move(compiler)](std::shared_ptr<const graph::Graph> graph,
                                          autograd::GraphRole role) {
    const auto log_step = [&](const char* what) {
      observe::log(observe::Component::dynamo, observe::Level::info, [&] {
        return std::string("Step 3: ") + what + " " + autograd::to_string(role) + " graph";
      });
    };
    log_step("compiling");
    autograd::CompiledGraph compiled = compiler(std::move(graph), role);
    log_step("done compiling");
    return compiled;
  };
}

}  // namespace

Callable compile_ahead_of_time(const Subject& subject, const autograd::AotOptions& options) {
  autograd::AotOptions chosen = options;
  if (!chosen.compiler) chosen.compiler = &autograd::run_with_aten;
  if (subject.faults != nullptr) {
    chosen.compiler = [compiler = chosen.compiler, faults = subject.faults](
                          std::shared_ptr<const graph::Graph> graph, autograd::GraphRole role) {
      return compiler(faults->inject(std::move(graph)), role);
    };
  }
  // Outside of the faults: whoever watches the compiler sees it fail.
  if (subject.wrap_compiler) chosen.compiler = subject.wrap_compiler(std::move(chosen.compiler));
  chosen.compiler = with_steps(std::move(chosen.compiler));
  const FaultsAsleepScope trial_run;
  auto program = std::make_shared<const autograd::AotProgram>(*subject.graph, subject.inputs,
                                                              chosen, subject.source);
  return [program](const std::vector<aten::Value>& inputs) { return program->run(inputs); };
}

}  // namespace assay::backends
