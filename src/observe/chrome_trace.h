// ChromeTrace: the consumer that writes a "traceEvents" file for Perfetto or chrome://tracing.
// Owned by the hub, which calls it with its lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "observe/event.h"

namespace assay::observe {

/// Keeps the events of one process in memory and writes them as one file. What has a duration
/// becomes a complete event ('X'), everything else an instant ('i'), a phase that is still open
/// when the file is written a begin event ('B').
class ChromeTrace {
 public:
  /// `%p` in the path becomes the process id. Throws SettingsError if the path cannot be written.
  explicit ChromeTrace(std::string path);

  void consume(const Event& event);

  /// Writes all events so far; later calls write the file anew with more of them. Returns what
  /// went wrong, or an empty text. In a forked child it does nothing: the file is its parent's.
  std::string write() const;

  /// False in a forked child, which has inherited its parent's trace.
  bool is_of_this_process() const;

  const std::string& path() const { return path_; }
  std::string to_json() const;

 private:
  void remember_thread(int thread);

  std::string path_;
  int process_;
  std::int64_t start_nanoseconds_;
  std::vector<Event> events_;
  std::size_t left_out_ = 0;
  std::map<int, std::vector<Event>> open_phases_;  // by thread
  std::map<int, std::string> thread_names_;
};

}  // namespace assay::observe
