#include "backends/aot.h"

#include "aten/runner.h"
#include "backends/fault.h"

namespace assay::backends {

CompiledPointer compile_ahead_of_time(const CompileRequest& request, autograd::AotOptions options) {
  if (!options.compiler) options.compiler = &aten::run_with_aten;
  if (request.context->decorate) {
    options.compiler = request.context->decorate(std::move(options.compiler));
  }
  if (const auto found = request.options.find("lazy_backward"); found != request.options.end()) {
    options.lazy_backward = std::get<bool>(found->second);
  }
  const FaultsAsleepScope trial_run;  // tracing runs the graph
  return std::make_shared<const autograd::AotGraph>(request, options);
}

}  // namespace assay::backends
