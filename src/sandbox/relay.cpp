// A trial server that somebody else has started and that listens on a Unix socket: the server
// process that a pool wants is a relay, which passes on the bytes of both directions.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "assay/error.h"
#include "sandbox/server.h"

namespace assay::sandbox {

namespace {

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return socket;
  }
  close(socket);
  return -1;
}

// False at the end of the stream.
bool pass_on(int from, int to) {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = read(from, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  if (count == 0) return false;
  for (ssize_t sent = 0; sent < count;) {
    const ssize_t now =
        send(to, buffer.data() + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
    if (now < 0 && errno != EINTR) return false;
    if (now > 0) sent += now;
  }
  return true;
}

void pass_on_both_ways(int left, int right) {
  while (true) {
    std::array<pollfd, 2> polled = {pollfd{left, POLLIN, 0}, pollfd{right, POLLIN, 0}};
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0 && !pass_on(left, right)) return;
    if (polled[1].revents != 0 && !pass_on(right, left)) return;
  }
}

}  // namespace

StartServer connect_to_server(std::string path) {
  return [path = std::move(path)](int connection) {
    const pid_t parent = getpid();
    const pid_t process = fork();
    if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (process != 0) return static_cast<int>(process);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (getppid() != parent) _exit(1);
    const int server = connect_to(path);
    if (server < 0) {
      (void)std::fprintf(stderr, "%s: no trial server listens here\n", path.c_str());
      _exit(1);
    }
    pass_on_both_ways(connection, server);
    _exit(0);
  };
}

}  // namespace assay::sandbox
