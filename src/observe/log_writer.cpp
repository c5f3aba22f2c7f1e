#include "observe/log_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace assay::observe {
namespace {

/// Writes the whole text. A log that cannot be written (closed stderr, full disk) has nowhere to
/// be reported, so it is given up.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // a pipe that its reader made non-blocking
      pollfd wait{descriptor, POLLOUT, 0};
      if (::poll(&wait, 1, -1) < 0 && errno != EINTR) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

LogWriter::LogWriter(LogLevels levels, LogFormat format, const std::string& path)
    : levels_(std::move(levels)), format_(std::move(format)) {
  if (path.empty()) return;
  // O_APPEND also keeps forked children from overwriting each other's lines.
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) {
    throw SettingsError("cannot write the log file \"" + path +
                        "\": " + std::generic_category().message(errno));
  }
}

LogWriter::~LogWriter() {
  if (file_ >= 0) ::close(file_);
}

LogWriter::LogWriter(LogWriter&& other) noexcept
    : levels_(std::move(other.levels_)),
      format_(std::move(other.format_)),
      file_(std::exchange(other.file_, -1)) {}

LogWriter& LogWriter::operator=(LogWriter&& other) noexcept {
  std::swap(levels_, other.levels_);
  std::swap(format_, other.format_);
  std::swap(file_, other.file_);
  return *this;
}

void LogWriter::consume(const Event& event) {
  if (event.kind == Kind::phase_begin || event.kind == Kind::phase_end) return;
  if (event.level < levels_.of(event.channel)) return;
  const std::string record = format_(event);
  write_all(STDERR_FILENO, record);
  if (file_ >= 0) write_all(file_, record);
}

}  // namespace assay::observe
