#include "sandbox/server.h"

#include <ATen/Parallel.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "sandbox/line_socket.h"
#include "sandbox/prepare.h"
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

// As `git bisect run`: 0 is good, 125 cannot say, anything else is the failure. 126 and 127 are the
// shell's: there is no such command, and a reduction to nothing would "reproduce" that.
void judge_exit_code(const Outcome& outcome, json& report) {
  if (!outcome.exit_code || outcome.limit != Outcome::Limit::none) return;
  const int code = *outcome.exit_code;
  const bool is_shells = code == 126 || code == 127;
  report["status"] = code == 0 ? "passed" : code == 125 || is_shells ? "invalid" : "failed";
  if (code != 0) report["type"] = "exit code " + std::to_string(code);
  if (is_shells) report["message"] = "the command cannot be run: " + outcome.output;
}

// The file that a command is given. The server removes it: the command may be killed.
class CandidateFile {
 public:
  explicit CandidateFile(const Trial& trial) {
    if (!trial.is_command()) return;
    path_ = candidate_path(trial);
    std::ofstream stream(path_, std::ios::binary);
    stream << trial.file;
    stream.close();
    if (!stream) throw std::system_error(errno, std::generic_category(), path_.string());
  }
  ~CandidateFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  CandidateFile(const CandidateFile&) = delete;
  CandidateFile& operator=(const CandidateFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  static std::filesystem::path candidate_path(const Trial& trial) {
    return std::filesystem::path(trial.save_directory) /
           (std::string(kCandidatePrefix) + std::to_string(getpid()) + ".py");
  }
  std::filesystem::path path_;
};

json carry_out(const Trial& trial, LineSocket& socket) {
  Ending ending;
  try {
    const CandidateFile file(trial);
    const auto body = [&](int report_pipe) {
      if (trial.is_command()) {
        run_command(trial.command, file.path(), report_pipe);
      } else {
        run_trial(trial, report_pipe);
      }
    };
    ending = run_process(limits_for(trial.limits, trial.threads), body, socket.descriptor(), [&] {
      // A message during a trial asks for its end, and so does the end of the stream.
      socket.receive_now();
      return true;
    });
  } catch (const std::system_error& error) {
    return {{"error", error.what()}};
  }
  json report = merge(ending.report);
  if (trial.is_command()) judge_exit_code(ending.outcome, report);
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
    // There is one trial at a time, so a line that already waits can only ask for the end of this
    // one.
    json answer = socket.has_line() ? json{{"error", "the trial was cancelled"}}
                                    : carry_out(trial_from_json(request), socket);
    answer["id"] = request.value("id", 0);
    using Handler = json::error_handler_t;
    if (!socket.send(answer.dump(-1, ' ', false, Handler::replace))) return;
  }
}

}  // namespace assay::sandbox
