// `assay config`: every setting with its value, where the value comes from, and what it is for.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "config/describe.h"

namespace assay::cli {

namespace {

using config::Description;

nlohmann::json as_json(const config::Value& value) {
  return std::visit([](const auto& held) { return nlohmann::json(held); }, value);
}

nlohmann::json as_json(const Description& row) {
  const config::Setting& setting = *row.setting;
  auto variables = nlohmann::json::array();
  for (const std::string_view name : setting.variables.names()) {
    if (!name.empty()) variables.push_back(name);
  }
  nlohmann::json entry = {{"name", setting.name},
                          {"type", config::to_string(setting.domain.type)},
                          {"allowed", config::allowed_values(setting)},
                          {"value", nullptr},
                          {"default", as_json(config::default_value(setting))},
                          {"origin", row.error.empty() ? config::to_string(row.origin) : "error"},
                          {"environment", variables},
                          {"reserved", setting.is_reserved()},
                          {"doc", setting.doc}};
  if (row.value) entry["value"] = as_json(*row.value);
  if (!row.error.empty()) entry["error"] = row.error;
  return entry;
}

std::string shown(const Description& row) {
  if (!row.value) return "(bad value)";
  const std::string text = config::to_text(*row.value);
  return text.empty() ? "(nothing)" : text;
}

}  // namespace

int config(bool json) {
  auto list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows = {{"setting", "value", "origin", "what it does"}};
  std::string errors;
  for (const Description& row : config::describe_settings()) {
    list.push_back(as_json(row));
    rows.push_back({std::string(row.setting->name), shown(row),
                    row.error.empty() ? config::to_string(row.origin) : "environment",
                    std::string(row.setting->doc)});
    if (!row.error.empty()) errors += red("error:") + " " + row.error + "\n";
  }
  if (json) {
    using Handler = nlohmann::json::error_handler_t;
    std::printf("%s\n", list.dump(2, ' ', false, Handler::replace).c_str());
  } else {
    std::printf("%s", table(rows).c_str());
  }
  (void)std::fprintf(stderr, "%s", errors.c_str());
  return errors.empty() ? 0 : 2;
}

}  // namespace assay::cli
