#include "sandbox/trial.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "assay/error.h"

namespace assay::sandbox {

using nlohmann::json;

namespace {

template <typename T>
void read(const json& object, const char* key, T& value) {
  const auto found = object.find(key);
  if (found != object.end() && !found->is_null()) value = found->template get<T>();
}

void read(const json& object, const char* key, std::optional<Stage>& stage) {
  std::string name;
  read(object, key, name);
  stage = stage_named(name);
  if (!stage && !name.empty()) throw UserError("unknown stage '" + name + "'");
}

json name_of(const std::optional<Stage>& stage) {
  return stage ? std::string(assay::to_string(*stage)) : "";
}

// Each with its name in requests and signatures.
constexpr std::array<std::pair<const char*, bool Extras::*>, 5> kExtras = {
    {{"strides", &Extras::strides},
     {"aliasing", &Extras::aliasing},
     {"second_call", &Extras::second_call},
     {"exception", &Extras::exception},
     {"all_strides", &Extras::all_strides}}};

json to_json(const Extras& extras) {
  json names = json::array();
  for (const auto& [name, member] : kExtras) {
    if (extras.*member) names.push_back(name);
  }
  return names;
}

const char* to_string(Trial::Task task) {
  switch (task) {
    case Trial::Task::test:
      return "test";
    case Trial::Task::record:
      return "record";
    case Trial::Task::analyze:
      return "analyze";
    case Trial::Task::locate:
      return "locate";
  }
  return "";
}

Report report_from_json(const json& object) {
  Report report;
  read(object, "status", report.status);
  read(object, "stage", report.stage);
  read(object, "type", report.type);
  read(object, "message", report.message);
  read(object, "node", report.node);
  read(object, "operator", report.op);
  read(object, "suspects", report.suspects);
  read(object, "not_compared", report.not_compared);
  if (const auto accuracy = object.find("accuracy"); accuracy != object.end()) {
    read(*accuracy, "kind", report.accuracy_kind);
    read(*accuracy, "where", report.accuracy_where);
    read(*accuracy, "error", report.error);
    read(*accuracy, "tolerance", report.tolerance);
  }
  if (const auto differences = object.find("differences"); differences != object.end()) {
    for (const json& difference : *differences) {
      report.differences.push_back(
          {difference.at("where").get<std::string>(), difference.at("kind").get<std::string>()});
    }
  }
  if (const auto values = object.find("values"); values != object.end()) {
    report.values = values->dump();
  }
  return report;
}

}  // namespace

Extras Extras::only(std::string_view type) {
  Extras extras;
  for (const auto& [name, member] : kExtras) extras.*member = type == name;
  return extras;
}

Limits limits_for(const Limits& limits, int threads) {
  // Address space: glibc reserves a stack of 8 MB and a heap of 64 MB (twice that, to align it).
  constexpr std::uint64_t kBytesPerThread = std::uint64_t{144} << 20U;
  Limits scaled = limits;
  scaled.cpu_seconds *= threads;
  scaled.memory_bytes += kBytesPerThread * static_cast<std::uint64_t>(threads - 1);
  return scaled;
}

json to_json(const Trial& trial) {
  json config = json::array();
  for (const auto& [name, value] : trial.config) {
    config.push_back(json::array({name, json::parse(value)}));
  }
  return {{"task", to_string(trial.task)},
          {"file", trial.file},
          {"save_dir", trial.save_directory},
          {"backend", trial.backend},
          {"accuracy", trial.accuracy},
          {"extras", to_json(trial.extras)},
          {"eager", trial.eager},
          {"repeat_eager", trial.repeat_eager},
          {"backward", trial.backward},
          {"until", name_of(trial.until)},
          {"ignore_non_fp", trial.ignore_non_fp},
          {"autocast", trial.autocast},
          {"private_cache", trial.private_cache},
          {"inject", trial.inject},
          {"disable_passes", trial.disable_passes},
          {"seed", trial.seed},
          {"threads", trial.threads},
          {"config", std::move(config)},
          {"setup", trial.setup},
          {"command", trial.command},
          {"limits",
           {{"wall", trial.limits.wall_seconds},
            {"cpu", trial.limits.cpu_seconds},
            {"memory", trial.limits.memory_bytes},
            {"output", trial.limits.output_bytes}}}};
}

Trial trial_from_json(const json& object) {
  Trial trial;
  for (const Trial::Task task : {Trial::Task::record, Trial::Task::analyze, Trial::Task::locate}) {
    if (object.value("task", "test") == to_string(task)) trial.task = task;
  }
  read(object, "file", trial.file);
  read(object, "save_dir", trial.save_directory);
  read(object, "backend", trial.backend);
  read(object, "accuracy", trial.accuracy);
  for (const auto& [name, member] : kExtras) {
    const json names = object.value("extras", json::array());
    trial.extras.*member = std::ranges::find(names, name) != names.end();
  }
  read(object, "eager", trial.eager);
  read(object, "repeat_eager", trial.repeat_eager);
  read(object, "backward", trial.backward);
  read(object, "until", trial.until);
  read(object, "ignore_non_fp", trial.ignore_non_fp);
  read(object, "autocast", trial.autocast);
  read(object, "private_cache", trial.private_cache);
  read(object, "inject", trial.inject);
  read(object, "disable_passes", trial.disable_passes);
  read(object, "seed", trial.seed);
  read(object, "threads", trial.threads);
  if (const auto config = object.find("config"); config != object.end()) {
    for (const json& setting : *config) {
      trial.config.emplace_back(setting.at(0).get<std::string>(), setting.at(1).dump());
    }
  }
  read(object, "setup", trial.setup);
  read(object, "command", trial.command);
  if (const auto limits = object.find("limits"); limits != object.end()) {
    read(*limits, "wall", trial.limits.wall_seconds);
    read(*limits, "cpu", trial.limits.cpu_seconds);
    read(*limits, "memory", trial.limits.memory_bytes);
    read(*limits, "output", trial.limits.output_bytes);
  }
  return trial;
}

json to_json(const Outcome& outcome, const json& report) {
  if (!outcome.server_error.empty()) return {{"error", outcome.server_error}};
  const auto optional = [](const std::optional<int>& value) {
    return value ? json(*value) : json(nullptr);
  };
  json limit = nullptr;
  if (outcome.limit == Outcome::Limit::wall) limit = "wall";
  if (outcome.limit == Outcome::Limit::cpu) limit = "cpu";
  return {{"exit", optional(outcome.exit_code)},
          {"signal", optional(outcome.signal)},
          {"limit", std::move(limit)},
          {"seconds", outcome.seconds},
          {"cpu_seconds", outcome.cpu_seconds},
          {"peak_bytes", outcome.peak_bytes},
          {"output", outcome.output},
          {"report", report}};
}

Outcome outcome_from_json(const json& object) {
  Outcome outcome;
  read(object, "error", outcome.server_error);
  if (!outcome.server_error.empty()) return outcome;
  const auto optional = [&](const char* key) -> std::optional<int> {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return std::nullopt;
    return found->get<int>();
  };
  outcome.exit_code = optional("exit");
  outcome.signal = optional("signal");
  std::string limit;
  read(object, "limit", limit);
  if (limit == "wall") outcome.limit = Outcome::Limit::wall;
  if (limit == "cpu") outcome.limit = Outcome::Limit::cpu;
  read(object, "seconds", outcome.seconds);
  read(object, "cpu_seconds", outcome.cpu_seconds);
  read(object, "peak_bytes", outcome.peak_bytes);
  read(object, "output", outcome.output);
  if (const auto report = object.find("report"); report != object.end()) {
    outcome.report = report_from_json(*report);
  }
  return outcome;
}

}  // namespace assay::sandbox
