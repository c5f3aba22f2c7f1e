// `assay logs`, `assay passes`, `assay backends`, `assay decompositions`, `assay --version`: what
// there is.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "assay/backend.h"
#include "assay/version.h"
#include "autograd/decompositions.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "graph/pass_manager.h"
#include "observe/log_names.h"

namespace assay::cli {

int logs(bool json) {
  if (!json) {
    std::printf("%s", observe::render_log_names().c_str());
    return 0;
  }
  auto list = nlohmann::json::array();
  for (const observe::LogName& row : observe::log_names) {
    list.push_back({{"name", row.name},
                    {"kind", row.channel.is_artifact() ? "artifact" : "component"},
                    {"off_by_default", row.off_by_default},
                    {"not_yet", row.not_emitted},
                    {"description", row.description}});
  }
  std::printf("%s\n", list.dump(2).c_str());
  return 0;
}

int passes(bool json) {
  auto list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows = {{"pass", "room", "", "what it does"}};
  for (const graph::Pass& pass : graph::all_passes()) {
    list.push_back({{"name", pass.name},
                    {"room", pass.room},
                    {"required", pass.is_required},
                    {"description", pass.description}});
    rows.push_back({std::string(pass.name), std::string(pass.room),
                    pass.is_required ? "required" : "", std::string(pass.description)});
  }
  if (json) {
    std::printf("%s\n", list.dump(2).c_str());
  } else {
    std::printf("%s", table(rows).c_str());
    std::printf(
        "\nASSAY_DISABLE_PASSES=a,b turns off passes that are not required; ASSAY_PASS_LIMIT=N "
        "stops after N rewrites.\n");
  }
  return 0;
}

int backends(bool json) {
  auto list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows = {{"backend", "tags", "what it does"}};
  for (const auto& backend : all_backends()) {
    auto options = nlohmann::json::array();
    for (const BackendOption& option : backend->options) {
      const auto value =
          std::visit([](const auto& held) { return nlohmann::json(held); }, option.default_value);
      options.push_back(
          {{"name", option.name}, {"default", value}, {"description", option.description}});
    }
    list.push_back({{"name", backend->name},
                    {"tags", backend->tags},
                    {"description", backend->description},
                    {"options", options}});
    std::string tags;
    for (const std::string& tag : backend->tags) tags += (tags.empty() ? "" : ",") + tag;
    rows.push_back({backend->name, tags, backend->description});
  }
  if (json) {
    std::printf("%s\n", list.dump(2).c_str());
  } else {
    std::printf("%s", table(rows).c_str());
    std::printf(
        "\n--inject relu:runtime_error (or ASSAY_INJECT_FAULT) injects a fault into any of "
        "them.\n");
  }
  return 0;
}

int decompositions(bool json) {
  auto list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows = {{"operator", "decomposed into"}};
  for (const autograd::Decomposition& row : autograd::decompositions()) {
    list.push_back({{"operator", row.op}, {"into", row.into}});
    rows.push_back({std::string(row.op), std::string(row.into)});
  }
  std::printf("%s", json ? (list.dump(2) + "\n").c_str() : table(rows).c_str());
  return 0;
}

std::string version_text() {
  return "assay " + std::string(version) + " (torch " + std::string(torch_version) + ")";
}

}  // namespace assay::cli
