// The client's side: starts servers, gives them trials, replaces those that die.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "assay/error.h"
#include "sandbox/line_socket.h"
#include "sandbox/process.h"
#include "sandbox/server.h"

namespace assay::sandbox {

namespace {

using nlohmann::json;

void set_close_on_exec(int descriptor, bool close) {
  fcntl(descriptor, F_SETFD, close ? FD_CLOEXEC : 0);
}

constexpr int kStarts = 5;
constexpr int kMillisecondsToEnd = 1000;

int fork_or_throw() {
  const pid_t process = fork();
  if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
  return process;
}

// A server that ended by itself has said why on stderr, and would do so again.
void refuse_if_exited(pid_t& server) {
  int status = 0;
  if (waitpid(server, &status, 0) != server) return;
  server = -1;
  if (WIFEXITED(status)) {
    throw UserError("the trial server did not start",
                    "it exited with code " + std::to_string(WEXITSTATUS(status)));
  }
}

}  // namespace

StartServer fork_server() {
  return [](int connection) {
    const pid_t parent = getpid();
    const pid_t process = fork_or_throw();
    if (process != 0) return static_cast<int>(process);
    setpgid(0, 0);  // Ctrl-C is for the reducer, which ends its servers itself
    signal(SIGINT, SIG_DFL);
    end_with_parent(parent);
    try {
      serve_trials(connection);
    } catch (const std::exception& error) {
      (void)std::fprintf(stderr, "trial server: %s\n", error.what());
      _exit(1);
    }
    _exit(0);
  };
}

StartServer start_command(std::vector<std::string> command,
                          std::vector<std::pair<std::string, std::string>> environment) {
  return [command = std::move(command), environment = std::move(environment)](int connection) {
    const pid_t parent = getpid();
    const pid_t process = fork_or_throw();
    if (process != 0) return static_cast<int>(process);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    set_close_on_exec(connection, false);
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--connection", std::to_string(connection)});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    (void)std::fprintf(stderr, "%s cannot be started: %s\n", arguments[0], std::strerror(errno));
    _exit(127);
  };
}

struct ServerPool::Worker {
  std::unique_ptr<LineSocket> socket;
  pid_t process = -1;
  bool is_ready = false;
  bool is_busy = false;
  std::int64_t trial = 0;  // the number of the last one sent
};

ServerPool::ServerPool(StartServer start, int workers) : start_(std::move(start)) {
  for (int i = 0; i < workers; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    connect(*workers_.back());
  }
}

ServerPool::~ServerPool() {
  for (const auto& worker : workers_) disconnect(*worker);
}

int ServerPool::workers() const { return static_cast<int>(workers_.size()); }
bool ServerPool::is_idle(int worker) const { return !workers_[worker]->is_busy; }

int ServerPool::idle_worker() const {
  for (int i = 0; i < workers(); ++i) {
    if (is_idle(i)) return i;
  }
  return -1;
}

void ServerPool::connect(Worker& worker) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  worker.socket = std::make_unique<LineSocket>(ends[0]);
  const LineSocket servers_end(ends[1]);
  worker.is_ready = false;
  worker.is_busy = false;
  worker.process = start_(servers_end.descriptor());
}

void ServerPool::disconnect(Worker& worker) {
  worker.socket.reset();
  if (worker.process <= 0) return;
  // By SIGTERM it takes its trial with it, and what that has started. One that hangs is killed.
  kill(worker.process, SIGTERM);
  for (int wait = 0; wait < kMillisecondsToEnd; ++wait) {
    const pid_t ended = waitpid(worker.process, nullptr, WNOHANG);
    if (ended == worker.process || (ended < 0 && errno != EINTR)) {
      worker.process = -1;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(worker.process, SIGKILL);
  while (waitpid(worker.process, nullptr, 0) < 0 && errno == EINTR) {
  }
  worker.process = -1;
}

void ServerPool::wait_until_ready(Worker& worker) {
  // A server that somebody kills is started again, one that cannot start is not.
  for (int start = 0; !worker.is_ready && start < kStarts; ++start) {
    if (start > 0) {
      disconnect(worker);
      connect(worker);
    }
    const auto line = worker.socket->receive();
    if (!line) {
      refuse_if_exited(worker.process);
      continue;
    }
    const json hello = json::parse(*line, nullptr, false);
    worker.is_ready = hello.is_object() && hello.value("ready", false);
    if (!worker.is_ready) {
      throw UserError("the trial server did not start",
                      hello.is_object() ? hello.value("error", std::string()) : std::string());
    }
  }
  if (!worker.is_ready) throw UserError("the trial server died during startup");
}

void ServerPool::start(int index, const Trial& trial) {
  Worker& worker = *workers_[index];
  internal_check(!worker.is_busy, "a worker has one trial at a time");
  json request = to_json(trial);
  request["id"] = ++worker.trial;
  using Handler = json::error_handler_t;
  const std::string line = request.dump(-1, ' ', false, Handler::replace);
  wait_until_ready(worker);
  if (!worker.socket->send(line)) {
    disconnect(worker);
    connect(worker);
    wait_until_ready(worker);
    if (!worker.socket->send(line)) throw UserError("the trial server died when it got a trial");
  }
  worker.is_busy = true;
}

std::pair<int, Outcome> ServerPool::wait() {
  while (true) {
    std::vector<pollfd> polled;
    std::vector<int> busy;
    for (int i = 0; i < workers(); ++i) {
      if (is_idle(i)) continue;
      busy.push_back(i);
      polled.push_back({workers_[i]->socket->descriptor(), POLLIN, 0});
    }
    internal_check(!busy.empty(), "a trial must be under way to wait for one");
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "poll");
    }
    for (std::size_t i = 0; i < busy.size(); ++i) {
      if (polled[i].revents == 0) continue;
      Worker& worker = *workers_[busy[i]];
      const auto give_up = [&](const char* reason) {
        disconnect(worker);
        connect(worker);
        Outcome outcome;
        outcome.server_error = reason;
        return std::pair{busy[i], outcome};
      };
      if (!worker.socket->receive_now()) return give_up("the trial server died");
      while (const auto line = worker.socket->take_line()) {
        const json answer = json::parse(*line, nullptr, false);
        if (!answer.is_object()) return give_up("the trial server's answer is not a JSON object");
        const auto id = answer.find("id");
        if (id == answer.end() || *id != worker.trial) continue;  // was cancelled
        worker.is_busy = false;
        return {busy[i], outcome_from_json(answer)};
      }
    }
  }
}

void ServerPool::cancel(int index) {
  Worker& worker = *workers_[index];
  if (!worker.is_busy) return;
  // Any message during a trial asks for its end; the answer still comes, and is passed over.
  worker.socket->send(json{{"cancel", worker.trial}}.dump());
  worker.is_busy = false;
}

Outcome ServerPool::run(const Trial& trial) {
  start(0, trial);
  return wait().second;
}

}  // namespace assay::sandbox
