// LogWriter: the consumer that prints events as log lines on stderr and in a file.
// Owned by the hub, which calls it with its lock held.
#pragma once

#include <string>

#include "observe/event.h"
#include "observe/log_format.h"
#include "observe/log_settings.h"

namespace assay::observe {

/// Prints the events that its levels let through; each record is one write to each place.
class LogWriter {
 public:
  LogWriter() = default;

  /// `path` is a file that gets the lines as well; empty for none. Lines are appended, as in stock.
  /// Throws SettingsError if it cannot be opened.
  LogWriter(LogLevels levels, LogFormat format, const std::string& path);
  ~LogWriter();
  LogWriter(LogWriter&& other) noexcept;
  LogWriter& operator=(LogWriter&& other) noexcept;

  const LogLevels& levels() const { return levels_; }
  void set_levels(LogLevels levels) { levels_ = std::move(levels); }

  /// Prints the event if it is of a printed kind and its level is high enough for its channel.
  void consume(const Event& event);

 private:
  LogLevels levels_;
  LogFormat format_;
  int file_ = -1;
};

}  // namespace assay::observe
