/// \file The trial server of Assay's own stack, and the client of any trial server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/trial.h"

namespace assay::sandbox {

/// Serves trials on the connection until its end: forks one process for each. The calling process
/// must have one thread, and must not have run an operator on more.
void serve_trials(int connection);

/// Makes the servers of a pool: gets the server's ends of the connections, returns the process to
/// wait for. Called again when a server has died.
using StartServer = std::function<int(int connection)>;

/// Forks servers from this process, see serve_trials.
StartServer fork_server();
/// Starts `command` with `--connection FD` appended.
StartServer start_command(std::vector<std::string> command,
                          std::vector<std::pair<std::string, std::string>> environment = {});

/// Connects to a server that listens on that Unix socket.
StartServer connect_to_server(std::string path);

/// Trial servers, one trial at a time on each.
class ServerPool {
 public:
  ServerPool(StartServer start, int workers);
  ~ServerPool();
  ServerPool(const ServerPool&) = delete;
  ServerPool& operator=(const ServerPool&) = delete;

  int workers() const;
  bool is_idle(int worker) const;
  int idle_worker() const;  ///< -1 if all are busy.

  void start(int worker, const Trial& trial);
  /// Waits until one of the busy workers is done. A server that died is replaced, and its trial's
  /// outcome has `server_error`.
  std::pair<int, Outcome> wait();
  /// Gives up the worker's trial; it is idle afterwards.
  void cancel(int worker);

  /// One trial, on the first worker.
  Outcome run(const Trial& trial);

 private:
  struct Worker;
  void connect(Worker& worker);
  void disconnect(Worker& worker);
  void wait_until_ready(Worker& worker);
  std::optional<std::string> take_line(Worker& worker);

  StartServer start_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace assay::sandbox
