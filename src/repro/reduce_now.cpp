#include "repro/reduce_now.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <vector>

#include "base/environment.h"
#include "config/config.h"
#include "repro/dump.h"
#include "repro/warn.h"

namespace assay::repro {

namespace {

using std::filesystem::path;

bool is_program(const path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

// The caller's variables, but the child wraps no compiler itself, and injects the same faults.
std::vector<std::string> child_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> kept;
  for (const auto& [name, value] : added) kept.push_back(name + "=" + value);
  for (const auto& [name, value] : base::environment()) {
    if (name != "ASSAY_REPRO_AFTER" && name != "TORCHDYNAMO_REPRO_AFTER" &&
        name != "ASSAY_INJECT_FAULT" && !added.contains(name)) {
      kept.push_back(name + "=" + value);
    }
  }
  const std::string& faults = config::get<"inject_fault">();
  if (!faults.empty()) kept.push_back("ASSAY_INJECT_FAULT=" + faults);
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> made;
  made.reserve(texts.size() + 1);
  for (std::string& text : texts) made.push_back(text.data());
  made.push_back(nullptr);
  return made;
}

// The exit code; negative for a signal. Nothing if the program cannot be started.
std::optional<int> run_on_stderr(std::vector<std::string> command,
                                 const std::map<std::string, std::string>& environment) {
  std::vector<std::string> variables = child_environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int problem = posix_spawn(&child, command[0].c_str(), &actions, nullptr,
                                  pointers(command).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return std::nullopt;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

std::optional<path> find_assay_command() {
  if (const path named = config::get<"binary">(); !named.empty()) {
    return is_program(named) ? std::optional<path>(named) : std::nullopt;
  }
  Dl_info library = {};
  if (dladdr(reinterpret_cast<void*>(&find_assay_command), &library) != 0 &&
      library.dli_fname != nullptr) {
    const path beside =
        std::filesystem::absolute(library.dli_fname).parent_path() / ".." / "bin" / "assay";
    if (is_program(beside)) return beside.lexically_normal();
  }
  std::istringstream folders(base::environment_variable("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && is_program(path(folder) / "assay")) return path(folder) / "assay";
  }
  return std::nullopt;
}

void reduce_now(const DebugConfig& config, const path& launcher, const SentBackend& backend,
                bool accuracy) {
  const path output = launcher.parent_path() / "reduced";
  std::vector<std::string> command = {"assay", "reduce", launcher.string(), "--output",
                                      output.string()};
  command.insert(command.end(), backend.arguments.begin(), backend.arguments.end());
  if (accuracy) command.emplace_back("--accuracy");
  if (config.repro_forward_only) command.emplace_back("--only-forward");
  if (config.repro_ignore_non_fp) command.emplace_back("--ignore-non-fp");
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  const auto program = find_assay_command();
  if (!program) {
    warn("the assay command was not found (ASSAY_BINARY, beside libassay, PATH); to reduce:\n" +
         text);
    return;
  }
  command[0] = program->string();
  warn("Reducing: " + text);
  const std::optional<int> code = run_on_stderr(std::move(command), backend.environment);
  if (code != 0 || !std::filesystem::exists(output / "repro.py")) {
    warn(!code ? program->string() + " cannot be started"
               : "the reducer exited with code " + std::to_string(*code) + " and wrote no repro");
    return;
  }
  const path current = std::filesystem::current_path();
  try {
    copy_repro(output / "repro.py", current);
    warn("Copying reduced repro to " + (current / "repro.py").string());
  } catch (const std::exception& error) {
    warn("No write permissions for " + (current / "repro.py").string() + ": " + error.what() +
         "; the reduced repro is " + (output / "repro.py").string());
  }
}

}  // namespace assay::repro
