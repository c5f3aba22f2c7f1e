#include "cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace assay::cli {

namespace {

constexpr auto kInterval = std::chrono::milliseconds(50);

}  // namespace

ProgressLine::ProgressLine(bool is_quiet)
    : is_quiet_(is_quiet), is_terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const reduce::Progress& progress) {
  if (is_quiet_ && !is_terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  const bool is_smaller = progress.calls != last_calls_;
  if (is_terminal_ ? now - last_ < kInterval && !is_smaller : !is_smaller) return;
  last_ = now;
  last_calls_ = progress.calls;
  const double rate = static_cast<double>(progress.trials) / std::max(progress.seconds, 1e-3);
  char text[160];
  std::snprintf(text, sizeof text, "%-9.*s %5zu of %zu calls left  %6lld trials  %5.*f/s  %6.1f s",
                static_cast<int>(progress.pass.size()), progress.pass.data(), progress.calls,
                progress.calls_before, static_cast<long long>(progress.trials), rate < 10 ? 1 : 0,
                rate, progress.seconds);
  std::fprintf(stderr, is_terminal_ ? "\r\033[K%s" : "%s\n", text);
  std::fflush(stderr);
  is_shown_ = true;
}

void ProgressLine::say(const char* text) {
  if (is_quiet_ && !is_terminal_) return;
  std::fprintf(stderr, is_terminal_ ? "\r\033[K%s" : "%s\n", text);
  std::fflush(stderr);
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (is_shown_ && is_terminal_) std::fprintf(stderr, "\r\033[K");
  is_shown_ = false;
}

}  // namespace assay::cli
