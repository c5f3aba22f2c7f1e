#include "repro/config.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <utility>

#include "config/config.h"

namespace assay::repro {

namespace {

thread_local int suspensions = 0;

ReproAfter parse_after(const std::string& text) {
  if (text == "dynamo") return ReproAfter::dynamo;
  return text == "aot" ? ReproAfter::aot : ReproAfter::none;
}

const char* to_text(ReproAfter after) {
  switch (after) {
    case ReproAfter::none:
      return "";
    case ReproAfter::dynamo:
      return "dynamo";
    case ReproAfter::aot:
      return "aot";
  }
  return "";
}

std::optional<ReduceWhen> parse_reduce(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text == "now" ? ReduceWhen::now : ReduceWhen::launcher;
}

const char* to_text(const std::optional<ReduceWhen>& when) {
  if (!when) return "";
  return *when == ReduceWhen::now ? "now" : "launcher";
}

std::string run_name() {
  using std::chrono::system_clock;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() %
      1'000'000;
  std::tm local = {};
  localtime_r(&seconds, &local);
  std::array<char, 64> date = {};
  std::strftime(date.data(), date.size(), "%Y_%m_%d_%H_%M_%S", &local);
  std::array<char, 8> fraction = {};
  std::snprintf(fraction.data(), fraction.size(), "%06u", static_cast<unsigned>(micros) % 1000000U);
  return std::string("run_") + date.data() + "_" + fraction.data() + "-pid_" +
         std::to_string(::getpid());
}

}  // namespace

bool DebugConfig::reduces_now() const {
  if (repro_level < 2) return false;
  return reduce.value_or(repro_after == ReproAfter::dynamo
                             ? ReduceWhen::now
                             : ReduceWhen::launcher) == ReduceWhen::now;
}

DebugConfig current_debug_config() {
  DebugConfig made;
  if (DebugSuspended::on_this_thread()) return made;
  made.repro_after = parse_after(config::get<"repro_after">());
  // A bad value of a setting that nobody uses is not an error.
  if (made.repro_after == ReproAfter::none) return made;
  made.repro_level = static_cast<int>(config::get<"repro_level">());
  made.repro_forward_only = config::get<"repro_forward_only">();
  made.repro_ignore_non_fp = config::get<"repro_ignore_non_fp">();
  made.tolerance = config::get<"repro_tolerance">();
  made.reduce = parse_reduce(config::get<"reduce">());
  made.store_inputs = config::get<"repro_inputs">() == "data";
  made.debug_directory = config::get<"debug_dir_root">();
  return made;
}

DebugConfigScope::DebugConfigScope(const DebugConfig& config)
    : scope_({config::assign<"repro_after">(to_text(config.repro_after)),
              config::assign<"repro_level">(config.repro_level),
              config::assign<"repro_forward_only">(config.repro_forward_only),
              config::assign<"repro_ignore_non_fp">(config.repro_ignore_non_fp),
              config::assign<"repro_tolerance">(config.tolerance),
              config::assign<"reduce">(to_text(config.reduce)),
              config::assign<"repro_inputs">(config.store_inputs ? "data" : "shapes"),
              config::assign<"debug_dir_root">(config.debug_directory.string())}) {}

DebugSuspended::DebugSuspended() { ++suspensions; }
DebugSuspended::~DebugSuspended() { --suspensions; }
bool DebugSuspended::on_this_thread() { return suspensions > 0; }

std::filesystem::path run_directory(const std::filesystem::path& root) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::filesystem::path>, std::filesystem::path> known;
  const std::filesystem::path absolute = std::filesystem::absolute(root);
  const std::lock_guard lock(mutex);
  std::filesystem::path& run = known[{::getpid(), absolute}];  // a forked child has its own
  if (run.empty()) run = absolute / run_name();
  return run;
}

std::filesystem::path minifier_directory(const DebugConfig& config) {
  return run_directory(config.debug_directory) / "minifier";
}

}  // namespace assay::repro
