#include "observe/configure.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <utility>

#include "observe/hub.h"
#include "observe/log_names.h"
#include "observe/stream.h"

namespace assay::observe {
namespace {

/// Logs what went wrong with the trace, if anything; true if nothing did.
bool report(const std::string& problem) {
  if (!problem.empty()) log(Component::observe, Level::warning, problem);
  return problem.empty();
}

void warn_about_ignored(const LogLevels& levels) {
  for (const std::string& name : levels.ignored) {
    log(Component::observe, Level::warning, [&] {
      return "the log setting \"" + name + "\" is one of stock PyTorch; it does nothing in Assay";
    });
  }
  for (const std::string& name : levels.not_emitted) {
    log(Component::observe, Level::warning,
        [&] { return "the log artifact \"" + name + "\" is not emitted yet; it shows nothing"; });
  }
}

/// The process that was configured last. A forked child inherits the exit handler, and says
/// nothing at its end unless it was configured itself.
constinit std::atomic<int> configured_process{0};

void finish() {
  if (::getpid() != configured_process.load()) return;
  // As in stock, `dynamo` at INFO tells at the end where the time went.
  if (wants(Component::dynamo, Level::info) && !phase_timings().empty()) {
    log(Component::dynamo, Level::info, [] { return compile_times(true); });
  }
  flush();
}

void finish_at_exit() {
  configured_process = ::getpid();
  static const int registered = std::atexit(finish) | std::at_quick_exit(finish);
  static_cast<void>(registered);
}

/// Puts another trace, or none, in the place of the one under way, which is written.
bool replace_trace(std::optional<ChromeTrace> next) {
  Hub& shared = hub();
  {
    const std::lock_guard lock(shared.mutex);
    std::swap(shared.trace, next);
    set_gates(shared);
  }
  return report(next ? next->write() : "");
}

}  // namespace

void configure(const Settings& settings) {
  LogWriter writer(settings.logs, settings.format, settings.logs_out);
  std::optional<ChromeTrace> trace;
  if (!settings.trace.empty()) trace.emplace(settings.trace);
  Hub& shared = hub();
  {
    const std::lock_guard lock(shared.mutex);
    shared.writer = std::move(writer);
    shared.timings_asked = settings.timings;
    set_gates(shared);
  }
  replace_trace(std::move(trace));
  finish_at_exit();
  warn_about_ignored(settings.logs);
}

void set_logs(std::string_view text, std::string_view source) {
  const LogLevels levels = parse_logs(text, source);
  Hub& shared = hub();
  {
    const std::lock_guard lock(shared.mutex);
    shared.writer.set_levels(levels);
    set_gates(shared);
  }
  finish_at_exit();
  warn_about_ignored(levels);
}

void set_log_output(const LogFormat& format, const std::string& path) {
  Hub& shared = hub();
  const std::lock_guard lock(shared.mutex);
  shared.writer = LogWriter(shared.writer.levels(), format, path);
}

void start_trace(const std::string& path) {
  replace_trace(ChromeTrace(path));
  finish_at_exit();
}

bool flush() {
  Hub& shared = hub();
  std::string problem;
  {
    const std::lock_guard lock(shared.mutex);
    if (shared.trace) problem = shared.trace->write();
  }
  return report(problem);
}

bool stop_trace() { return replace_trace(std::nullopt); }

std::vector<PhaseTiming> phase_timings() {
  Hub& shared = hub();
  const std::lock_guard lock(shared.mutex);
  return shared.timings.rows();
}

void reset_timings() {
  Hub& shared = hub();
  const std::lock_guard lock(shared.mutex);
  shared.timings.reset();
}

}  // namespace assay::observe
