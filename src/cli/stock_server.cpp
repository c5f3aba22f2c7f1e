#include "cli/stock_server.h"

#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "config/config.h"
#include "graph/python_strings.h"

namespace assay::cli {

namespace {

namespace fs = std::filesystem;

// Finds the server without importing the package, which would load PyTorch before its time.
constexpr const char* kStart =
    "import importlib.util, os, sys\n"
    "package = importlib.util.find_spec('assay')\n"
    "if package is None:\n"
    "    sys.exit(sys.executable + ' has no package assay; set ASSAY_PYTHON to one that has')\n"
    "server = os.path.join(package.submodule_search_locations[0], 'stock_server.py')\n"
    "os.execv(sys.executable, [sys.executable, server, *sys.argv[1:]])\n";

// Without it the failure may not show, so a user must know.
void say_left_out(const std::string& setting) {
  (void)std::fprintf(stderr, "note: the file's setting of %s is ignored; --trust applies it\n",
                     setting.c_str());
}

// `True`, `3`, `'text'`: what a setting's value may be, as JSON. Nothing for anything else.
std::optional<std::string> literal_as_json(const std::string& python) {
  if (python == "True") return "true";
  if (python == "False") return "false";
  if (python == "None") return "null";
  const nlohmann::json number = nlohmann::json::parse(python, nullptr, false);
  if (number.is_number()) return number.dump();
  const bool is_quoted = python.size() >= 2 && (python.front() == '\'' || python.front() == '"') &&
                         python.back() == python.front() && python.find('\\') == std::string::npos;
  if (is_quoted) return nlohmann::json(python.substr(1, python.size() - 2)).dump();
  return std::nullopt;
}

}  // namespace

std::string find_python() {
  if (!config::get<"python">().empty()) return config::get<"python">();
  if (const auto environment = base::environment_variable("VIRTUAL_ENV")) {
    const fs::path python = fs::path(*environment) / "bin" / "python";
    if (fs::exists(python)) return python.string();
  }
  return "python3";
}

sandbox::StartServer start_stock_server(const fs::path& directory, const std::string& backend,
                                        const fs::path& backend_file) {
  const fs::path cache = fs::absolute(directory) / "inductor_cache";
  std::vector<std::string> command = {find_python(), "-c", kStart};
  if (backend_file.empty()) {
    command.insert(command.end(), {"--backend", backend});
  } else {
    command.insert(command.end(), {"--backend-file", fs::absolute(backend_file).string()});
  }
  return sandbox::start_command(
      std::move(command), {{"TORCHINDUCTOR_CACHE_DIR", cache.string()}, {"OMP_NUM_THREADS", "1"}});
}

void add_stock_settings(const repro::ReproFile& file, bool trust, sandbox::Trial& trial) {
  for (const repro::Setting& setting : file.config) {
    const auto value = literal_as_json(setting.value);
    if (value) trial.config.emplace_back(setting.name, *value);
    if (!value && !trust) say_left_out(setting.name);
  }
  if (!trust) {
    for (const repro::Setting& variable : file.environment) {
      // Trials have a cache of their own, whatever the file says.
      if (variable.name != "TORCHINDUCTOR_CACHE_DIR") say_left_out(variable.name);
    }
    return;
  }
  // Everything before the graph's class: imports that register operators, settings.
  const std::string& text = file.source->text;
  trial.setup = text.substr(0, text.find("\nclass ") + 1);
}

}  // namespace assay::cli
