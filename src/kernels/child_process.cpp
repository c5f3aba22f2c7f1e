#include "kernels/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;  // NOLINT: POSIX's own name

namespace assay::kernels {

namespace {

// Reads until the other end is closed; false if that takes longer than the limit.
bool read_all(int descriptor, std::chrono::steady_clock::time_point limit, std::string& output) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        limit - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd entry{descriptor, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    char block[4096];
    const ssize_t size = read(descriptor, block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    output.append(block, static_cast<std::size_t>(size));
  }
}

}  // namespace

std::string ChildResult::describe() const {
  switch (kind) {
    case Kind::exited:
      return "exited with " + std::to_string(code);
    case Kind::not_started:
      return std::string("could not be started: ") + std::strerror(code);
    case Kind::signaled:
      return "was killed by signal " + std::to_string(code);
    case Kind::timed_out:
      return "took too long";
  }
  return {};
}

ChildResult run_child(const std::vector<std::string>& arguments, std::chrono::milliseconds limit) {
  ChildResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.code = errno;
    return result;
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int error = posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    result.code = error;
    return result;
  }
  const bool ended = read_all(ends[0], std::chrono::steady_clock::now() + limit, result.output);
  close(ends[0]);
  if (!ended) kill(-child, SIGKILL);
  int status = 0;
  pid_t waited = 0;
  do {
    waited = waitpid(child, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (!ended) {
    result.kind = ChildResult::Kind::timed_out;
  } else if (waited == child && WIFSIGNALED(status)) {
    result.kind = ChildResult::Kind::signaled;
    result.code = WTERMSIG(status);
  } else {
    // A program that ignores SIGCHLD takes the status away; then the output file tells.
    result.kind = ChildResult::Kind::exited;
    result.code = waited == child ? WEXITSTATUS(status) : 0;
  }
  return result;
}

}  // namespace assay::kernels
