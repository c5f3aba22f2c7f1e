#include "repro/debug.h"

#include "backends/compile.h"
#include "repro/config.h"
#include "repro/debug_directory.h"
#include "repro/warn.h"
#include "repro/with_debug_wrapper.h"

namespace assay::repro {

std::shared_ptr<const CompiledGraph> compile_with_debug(const Backend& backend,
                                                        CompileRequest request) {
  const DebugConfig config = current_debug_config();
  backends::Surroundings surroundings;
  surroundings.debug_directory = debug_directory_decorator();
  if (config.repro_after == ReproAfter::none) {
    return backends::compile(backend, std::move(request), surroundings);
  }
  const auto has_wrapped = std::make_shared<std::atomic<bool>>(false);
  surroundings.faults_in_halves = config.repro_after == ReproAfter::aot;
  surroundings.debug_wrapper = [config, has_wrapped](Compiler compiler) {
    return with_debug_wrapper(std::move(compiler), config, has_wrapped);
  };
  auto compiled = backends::compile(backend, std::move(request), surroundings);
  if (!*has_wrapped) {
    warn("REPRO_AFTER=aot: '" + backend.name +
         "' does not differentiate ahead of time, so it is not checked; use REPRO_AFTER=dynamo");
  }
  return compiled;
}

}  // namespace assay::repro
