#include "repro/debug.h"

#include "backends/compile.h"
#include "repro/config.h"
#include "repro/warn.h"
#include "repro/with_debug_wrapper.h"

namespace assay::repro {

std::shared_ptr<const CompiledGraph> compile_with_debug(std::string_view backend,
                                                        CompileRequest request) {
  const DebugConfig config = current_debug_config();
  if (config.repro_after == ReproAfter::none) return compile_graph(backend, std::move(request));
  const auto has_watched = std::make_shared<std::atomic<bool>>(false);
  backends::Surroundings surroundings;
  surroundings.faults_in_halves = config.repro_after == ReproAfter::aot;
  surroundings.debug_wrapper = [config, has_watched](Compiler compiler) {
    return with_debug_wrapper(std::move(compiler), config, has_watched);
  };
  auto compiled = backends::compile(backend, std::move(request), surroundings);
  if (!*has_watched) {
    warn(
        "REPRO_AFTER=aot: '" + std::string(backend) +
        "' does not differentiate ahead of time and is not watched; REPRO_AFTER=dynamo watches it");
  }
  return compiled;
}

}  // namespace assay::repro
