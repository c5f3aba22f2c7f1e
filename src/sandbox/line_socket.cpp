#include "sandbox/line_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace assay::sandbox {

LineSocket::~LineSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool LineSocket::send(const std::string& line) const {
  const std::string text = line + "\n";
  std::size_t sent = 0;
  while (sent < text.size()) {
    // MSG_NOSIGNAL: a server that died is an answer, not a reason to die too.
    const ssize_t count = ::send(descriptor_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

std::optional<std::string> LineSocket::receive() {
  while (true) {
    if (auto line = take_line()) return line;
    if (!receive_now()) return std::nullopt;
  }
}

bool LineSocket::receive_now() {
  char buffer[1 << 16];
  ssize_t count = 0;
  do {
    count = recv(descriptor_, buffer, sizeof buffer, 0);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  pending_.append(buffer, static_cast<std::size_t>(count));
  return true;
}

std::optional<std::string> LineSocket::take_line() {
  const std::size_t end = pending_.find('\n', searched_);
  searched_ = pending_.size();
  if (end == std::string::npos) return std::nullopt;
  std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  searched_ = 0;
  return line;
}

}  // namespace assay::sandbox
