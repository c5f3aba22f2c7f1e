/// \file What the debug wrapper (repro/debug.h) does when a compiler fails: the settings that begin
/// with `repro_` and a few more (config/settings.h), read together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "config/store.h"

namespace assay::repro {

/// Whose graphs are watched: those captured from the program, or the halves that autograd makes.
enum class ReproAfter { none, dynamo, aot };
/// What follows once a failure is written: reduce it in a child process, or only leave the file.
enum class ReduceWhen { now, launcher };

struct DebugConfig {
  ReproAfter repro_after = ReproAfter::none;
  /// 1: on a failure write the graph to repro.py. 2: on a failure write minifier_launcher.py.
  /// 3: write it before every run, so that a crash leaves it. 4: write it if results are wrong.
  int repro_level = 2;
  bool repro_forward_only = false;   ///< Do not look at gradients.
  bool repro_ignore_non_fp = false;  ///< Compare floating-point results only.
  double tolerance = 1e-3;
  /// Unset: `now` after dynamo, `launcher` after aot, as the troubleshooting guide describes.
  std::optional<ReduceWhen> reduce = {};
  /// Where each process makes its `run_<date>-pid_<pid>/minifier`; relative to the current
  /// directory at the first failure.
  std::filesystem::path debug_directory = "torch_compile_debug";
  bool store_inputs = true;  ///< Write the inputs' data, not only their shapes and ranges.

  bool reduces_now() const;
};

/// What the settings say now; `repro_after` is none while a DebugSuspended lives on this thread.
/// Throws `UserError` if the environment has a bad value.
DebugConfig current_debug_config();

/// Sets all of them until the scope ends, for all threads.
class DebugConfigScope {
 public:
  explicit DebugConfigScope(const DebugConfig& config);

 private:
  config::PatchScope scope_;
};

/// While it lives, nothing that this thread compiles or runs is watched: the wrapper never watches
/// itself.
class DebugSuspended {
 public:
  DebugSuspended();
  ~DebugSuspended();
  DebugSuspended(const DebugSuspended&) = delete;
  DebugSuspended& operator=(const DebugSuspended&) = delete;

  static bool on_this_thread();
};

/// `<root>/run_<date>-pid_<pid>` as an absolute path: the same for the whole process. It is not
/// created.
std::filesystem::path run_directory(const std::filesystem::path& root);

/// `<debug_directory>/run_<date>-pid_<pid>/minifier` as an absolute path: the same for the whole
/// process. It is not created.
std::filesystem::path minifier_directory(const DebugConfig& config);

}  // namespace assay::repro
