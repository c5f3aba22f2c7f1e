#include "repro/config.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "assay/error.h"

namespace assay::repro {

namespace {

struct Setting {
  std::mutex mutex;
  std::optional<DebugConfig> config;
};

Setting& setting() {
  static Setting instance;
  return instance;
}

thread_local int suspensions = 0;

struct Variable {
  std::string name;
  std::string value;

  UserError error(const std::string& expected) const {
    return UserError(name + " is '" + value + "'", "expected " + expected);
  }
};

// ASSAY_<name> if it is set, even to nothing; else <prefix><name>.
Variable read_variable(const std::string& name, const std::string& prefix = "TORCHDYNAMO_") {
  for (const std::string& full_name : {"ASSAY_" + name, prefix + name}) {
    if (const char* value = std::getenv(full_name.c_str())) return {full_name, value};
  }
  return {"ASSAY_" + name, ""};
}

ReproAfter repro_after(const Variable& variable) {
  if (variable.value.empty()) return ReproAfter::none;
  if (variable.value == "dynamo") return ReproAfter::dynamo;
  if (variable.value == "aot") return ReproAfter::aot;
  throw variable.error("dynamo, aot or nothing");
}

int repro_level(const Variable& variable, int otherwise) {
  if (variable.value.empty()) return otherwise;
  if (variable.value.size() == 1 && variable.value[0] >= '1' && variable.value[0] <= '4') {
    return variable.value[0] - '0';
  }
  throw variable.error(
      "1 (write the graph), 2 (write a launcher), 3 (write it always) or 4 (check accuracy)");
}

bool flag(const Variable& variable) {
  if (variable.value.empty() || variable.value == "0") return false;
  if (variable.value == "1") return true;
  throw variable.error("0 or 1");
}

double tolerance(const Variable& variable, double otherwise) {
  if (variable.value.empty()) return otherwise;
  double number = 0;
  const char* end = variable.value.data() + variable.value.size();
  const auto read = std::from_chars(variable.value.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || !std::isfinite(number) || number < 0) {
    throw variable.error("a number such as 1e-3");
  }
  return number;
}

std::optional<ReduceWhen> reduce_when(const Variable& variable) {
  if (variable.value.empty()) return std::nullopt;
  if (variable.value == "now") return ReduceWhen::now;
  if (variable.value == "launcher") return ReduceWhen::launcher;
  throw variable.error("now or launcher");
}

bool store_inputs(const Variable& variable) {
  if (variable.value.empty() || variable.value == "data") return true;
  if (variable.value == "shapes") return false;
  throw variable.error("data or shapes");
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

DebugConfig debug_config_from_environment() {
  DebugConfig config;
  config.repro_after = repro_after(read_variable("REPRO_AFTER"));
  if (config.repro_after == ReproAfter::none) return config;
  config.repro_level = repro_level(read_variable("REPRO_LEVEL"), config.repro_level);
  config.repro_forward_only = flag(read_variable("REPRO_FORWARD_ONLY"));
  config.repro_ignore_non_fp = flag(read_variable("REPRO_IGNORE_NON_FP"));
  config.tolerance = tolerance(read_variable("REPRO_TOLERANCE"), config.tolerance);
  config.reduce = reduce_when(read_variable("REDUCE"));
  config.store_inputs = store_inputs(read_variable("REPRO_INPUTS"));
  const Variable root = read_variable("COMPILE_DEBUG_DIR", "TORCH_");
  if (!root.value.empty()) config.debug_directory = root.value / config.debug_directory;
  return config;
}

DebugConfig current_debug_config() {
  if (DebugSuspended::on_this_thread()) return {};
  {
    const std::lock_guard lock(setting().mutex);
    if (setting().config) return *setting().config;
  }
  return debug_config_from_environment();
}

DebugConfigScope::DebugConfigScope(DebugConfig config) {
  const std::lock_guard lock(setting().mutex);
  saved_ = std::exchange(setting().config, std::move(config));
}

DebugConfigScope::~DebugConfigScope() {
  const std::lock_guard lock(setting().mutex);
  setting().config = std::move(saved_);
}

DebugSuspended::DebugSuspended() { ++suspensions; }
DebugSuspended::~DebugSuspended() { --suspensions; }
bool DebugSuspended::on_this_thread() { return suspensions > 0; }

std::filesystem::path minifier_directory(const DebugConfig& config) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::filesystem::path>, std::filesystem::path> known;
  const std::filesystem::path root = std::filesystem::absolute(config.debug_directory);
  const std::lock_guard lock(mutex);
  std::filesystem::path& run = known[{::getpid(), root}];  // a forked child has its own
  if (run.empty()) run = root / run_name() / "minifier";
  return run;
}

}  // namespace assay::repro
