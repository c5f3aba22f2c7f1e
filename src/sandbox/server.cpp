#include "sandbox/server.h"

#include <ATen/Parallel.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "sandbox/line_socket.h"
#include "sandbox/process.h"
#include "sandbox/run_trial.h"

namespace assay::sandbox {

namespace {

using nlohmann::json;

// Later pieces add to earlier ones. A piece that a crash cut short is no JSON, and is left out.
json merge(const std::vector<std::string>& lines) {
  json report = json::object();
  for (const std::string& line : lines) {
    const json piece = json::parse(line, nullptr, false);
    if (piece.is_object()) report.update(piece);
  }
  return report;
}

// As `git bisect run`: 0 is good, 125 cannot say, anything else is the failure.
void judge_exit_code(const Outcome& outcome, json& report) {
  if (!outcome.exit_code) return;
  const int code = *outcome.exit_code;
  report["status"] = code == 0 ? "passed" : code == 125 ? "invalid" : "failed";
  if (code != 0) report["type"] = "exit code " + std::to_string(code);
}

json carry_out(const Trial& trial, LineSocket& socket) {
  Ending ending;
  try {
    ending = run_process(
        trial.limits, [&](int report_pipe) { run_trial(trial, report_pipe); }, socket.descriptor(),
        [&] {
          // A message during a trial asks for its end, and so does the end of the stream.
          socket.receive_now();
          return true;
        });
  } catch (const std::system_error& error) {
    return {{"error", error.what()}};
  }
  json report = merge(ending.report);
  if (!trial.command.empty() && trial.task == Trial::Task::test)
    judge_exit_code(ending.outcome, report);
  return to_json(ending.outcome, report);
}

}  // namespace

void serve_trials(int connection) {
  at::set_num_threads(1);
  at::set_num_interop_threads(1);
  LineSocket socket(connection);
  prepare_for_trials();
  if (!socket.send(json{{"ready", true}}.dump())) return;
  while (const auto line = socket.receive()) {
    const json request = json::parse(*line);
    if (request.contains("cancel")) continue;
    json answer = carry_out(trial_from_json(request), socket);
    answer["id"] = request.value("id", 0);
    using Handler = json::error_handler_t;
    if (!socket.send(answer.dump(-1, ' ', false, Handler::replace))) return;
  }
}

}  // namespace assay::sandbox
