#include "repro/debug.h"

#include "observe/observe.h"
#include "repro/warn.h"

namespace assay::repro {

namespace {

// As the troubleshooting guide has it: the last step that was begun and not done is at fault.
void log_step(const std::string& message) {
  observe::log(observe::Component::dynamo, observe::Level::info,
               [&] { return "Step 2: " + message; });
}

backends::Callable compile_halves_with_debug(const DebugConfig& config, std::string_view backend,
                                             const backends::Subject& subject) {
  bool is_watched = false;
  backends::Subject watched = subject;
  watched.wrap_compiler = [&](autograd::GraphCompiler compiler) {
    is_watched = true;
    return watch_compiler(config, std::string(backend), std::move(compiler));
  };
  backends::Callable compiled = backends::compile(backend, watched);
  if (!is_watched) {
    warn(
        "REPRO_AFTER=aot: '" + std::string(backend) +
        "' does not differentiate ahead of time and is not watched; REPRO_AFTER=dynamo watches it");
  }
  return compiled;
}

backends::Callable compile_as_configured(std::string_view backend,
                                         const backends::Subject& subject) {
  const DebugConfig config = current_debug_config();
  switch (config.repro_after) {
    case ReproAfter::none:
      break;
    case ReproAfter::dynamo:
      return compile_captured_with_debug(config, backend, subject);
    case ReproAfter::aot:
      return compile_halves_with_debug(config, backend, subject);
  }
  return backends::compile(backend, subject);
}

}  // namespace

backends::Callable compile_with_debug(std::string_view backend, const backends::Subject& subject) {
  log_step("calling compiler function " + std::string(backend));
  backends::Callable compiled = compile_as_configured(backend, subject);
  log_step("done compiler function " + std::string(backend));
  return compiled;
}

}  // namespace assay::repro
