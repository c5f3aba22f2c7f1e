#include "repro/dump.h"

#include <functional>
#include <mutex>
#include <set>
#include <system_error>

#include "assay/error.h"
#include "repro/inputs.h"
#include "repro/reduce_now.h"
#include "repro/save.h"
#include "repro/warn.h"
#include "repro/write.h"

namespace assay::repro {

namespace {

using std::filesystem::path;

// Threads that fail at the same time write one after the other.
std::mutex& writing() {
  static std::mutex mutex;
  return mutex;
}

void without_throwing(const std::function<void()>& write) noexcept {
  try {
    const std::lock_guard lock(writing());
    write();
  } catch (const std::exception& error) {
    warn(std::string("no repro was written: ") + error.what());
  } catch (...) {
    warn("no repro was written");
  }
}

// The minifier's directory, or one for temporary files where that cannot be made.
path made_directory(const DebugConfig& config) {
  try {
    path wanted = minifier_directory(config);
    std::filesystem::create_directories(wanted / "checkpoints");
    return wanted;
  } catch (const std::filesystem::filesystem_error& error) {
    DebugConfig elsewhere = config;
    elsewhere.debug_directory = std::filesystem::temp_directory_path() / "torch_compile_debug";
    path other = minifier_directory(elsewhere);
    std::filesystem::create_directories(other / "checkpoints");
    warn("No write permissions for " + config.debug_directory.string() + " (" +
         error.code().message() + "); using " + other.string());
    return other;
  }
}

// The failure as a file for `directory / where`; without the inputs' data if that cannot be
// written.
ReproFile make_file(const DebugConfig& config, const Failure& failure, const path& directory,
                    const char* where, const char* command) {
  SaveOptions options;
  options.stage = failure.stage;
  options.backend = failure.backend;
  options.command = command;
  options.accuracy = failure.accuracy ? "True" : "False";
  options.role = failure.role;
  options.failure = failure.message;
  const auto make = [&] {
    return make_graph_repro(directory / where, failure.graph, failure.inputs, options);
  };
  if (!config.store_inputs) return make();
  try {
    options.save_dir = directory / "checkpoints";
    return make();
  } catch (const std::exception& error) {
    warn(std::string("the inputs' data cannot be written, only their shapes: ") + error.what());
    options.save_dir.reset();
    return make();
  }
}

std::string node_count(const Failure& failure) { return std::to_string(failure.graph.size()); }

void dump_state(const DebugConfig& config, const Failure& failure, const path& directory) {
  const path file = directory / "checkpoints" / (node_count(failure) + ".py");
  warn("Writing checkpoint with " + node_count(failure) + " nodes to " + file.string());
  write_file(file, print_repro_file(make_file(config, failure, directory, "checkpoints", "run")));
  std::error_code problem;
  const path current = std::filesystem::current_path(problem);
  try {
    copy_repro(file, current);
    warn("Copying repro file for convenience to " + (current / "repro.py").string());
  } catch (const std::exception& error) {
    warn("No write permissions for " + (current / "repro.py").string() + ": " + error.what());
  }
}

ReproFile dump_launcher(const DebugConfig& config, const Failure& failure, const path& directory) {
  ReproFile file = make_file(config, failure, directory, "", "minify");
  write_file(directory / "minifier_launcher.py", print_repro_file(file));
  return file;
}

void reduce(const DebugConfig& config, const Failure& failure, const path& launcher) {
  SentBackend backend{{"--backend", failure.backend}};
  try {
    if (failure.send_backend) {
      backend = failure.send_backend(launcher.parent_path(), failure.graph);
    }
  } catch (const UserError& error) {
    warn(std::string("The failure is not reduced: ") + error.what());
    return;
  }
  reduce_now(config, launcher, backend, failure.accuracy);
}

// A backend of the Python program is written now: after a crash there is nobody who has it.
void say_how_to_reduce(const Failure& coming, const path& launcher) {
  if (!coming.send_backend) return;
  const SentBackend sent = coming.send_backend(launcher.parent_path(), coming.graph);
  if (sent.arguments.empty() || sent.arguments[0] != "--backend-file") return;
  std::string command;
  for (const auto& [name, value] : sent.environment) command += name + "=" + value + " ";
  command += "assay reduce " + launcher.string();
  for (const std::string& argument : sent.arguments) command += " " + argument;
  warn("After a crash, reduce it with:\n" + command);
}

// What only the launcher before this one needed.
void remove_old_storages(const ReproFile& launcher, const path& directory) {
  static std::set<path> earlier;  // guarded by writing()
  std::set<path> needed;
  for (const StorageSpec& spec : launcher.storages) {
    if (!spec.hash.empty()) needed.insert(directory / "checkpoints" / "storages" / spec.hash);
  }
  std::error_code ignored;
  for (const path& storage : earlier) {
    if (!needed.contains(storage)) std::filesystem::remove(storage, ignored);
  }
  earlier = std::move(needed);
}

}  // namespace

void copy_repro(const path& from, const path& directory) {
  ReproFile file = read_repro_file(from);
  if (const auto storages = storage_directory(file)) {
    file.save_directory = directory_for_file(directory, *storages);
  }
  write_file(directory / "repro.py", print_repro_file(file));
}

void dump_before_run(const DebugConfig& config, const Failure& coming) noexcept {
  without_throwing([&] {
    const path directory = made_directory(config);
    const path launcher = directory / "minifier_launcher.py";
    static std::set<path> announced;  // guarded by writing()
    if (announced.insert(launcher).second) {
      warn("Writing minified repro to:\n" + launcher.string());
      say_how_to_reduce(coming, launcher);
    }
    remove_old_storages(dump_launcher(config, coming, directory), directory);
  });
}

void dump_failure(const DebugConfig& config, const Failure& failure) noexcept {
  without_throwing([&] {
    const path directory = made_directory(config);
    if (config.repro_level == 1 || config.repro_level == 4) dump_state(config, failure, directory);
    if (config.repro_level == 1) return;
    const path launcher = directory / "minifier_launcher.py";
    warn("Writing minified repro to:\n" + launcher.string());
    dump_launcher(config, failure, directory);
    if (config.reduces_now()) reduce(config, failure, launcher);
  });
}

}  // namespace assay::repro
