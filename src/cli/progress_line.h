/// \file The line that shows how far a reduction is.
#pragma once

#include <chrono>
#include <string>

#include "reduce/reduce.h"

namespace assay::cli {

/// On a terminal one line that is rewritten; elsewhere a line whenever calls have become fewer.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_quiet);

  void show(const reduce::Progress& progress);
  /// Says what is being waited for.
  void say(const char* text);
  void clear();

 private:
  bool is_quiet_;
  bool is_terminal_;
  bool is_shown_ = false;
  std::size_t last_calls_ = 0;
  std::chrono::steady_clock::time_point last_ = {};
};

}  // namespace assay::cli
