// Switching the consumers on: logs, timings, Chrome trace. Called by the config room, which knows
// the environment (config/observe_settings.h), the command line, the Python package and tests.
#pragma once

#include <string>

#include "observe/log_format.h"
#include "observe/log_settings.h"
#include "observe/settings_error.h"

namespace assay::observe {

/// What the consumers do. The default: warnings and errors on stderr, nothing else.
struct Settings {
  LogLevels logs;
  LogFormat format;
  std::string logs_out;  ///< a file that gets the log lines too; empty for none
  std::string trace;     ///< a Chrome trace file; empty for none
  bool timings = false;  ///< collect what compile_times() shows
};

/// Replaces all settings. Throws SettingsError if a file cannot be written, and then nothing has
/// changed. A trace that was under way is written first.
void configure(const Settings& settings);

/// Replaces the log levels only, from text in the TORCH_LOGS grammar. `source` is what an error
/// message calls the text. Throws SettingsError, or HelpRequested for `help`.
void set_logs(std::string_view text, std::string_view source = "set_logs");

/// Replaces the format of log lines, and the file that gets them too (empty for none). Throws
/// SettingsError if it cannot be written, and then nothing has changed.
void set_log_output(const LogFormat& format, const std::string& path);

/// Begins a Chrome trace. Throws SettingsError if the file cannot be written.
void start_trace(const std::string& path);

/// Writes the Chrome trace as it stands, and goes on with it; it is also written at exit. If that
/// fails a warning is logged and the answer is false.
bool flush();

/// Writes the Chrome trace and ends it; answers as flush() does.
bool stop_trace();

}  // namespace assay::observe
