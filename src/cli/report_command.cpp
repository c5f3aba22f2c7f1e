// `assay report DIR`: what a diagnosis or a reduction has found, as a bug report.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "assay/error.h"
#include "cli/commands.h"
#include "graph/print.h"
#include "repro/repro_file.h"

namespace assay::cli {

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw UserError(file.string() + ": cannot be read");
  return text.str();
}

// How often each verdict was given; the log has one JSON object per line.
std::map<std::string, int> count_verdicts(const fs::path& log) {
  std::map<std::string, int> counts;
  std::istringstream lines(fs::exists(log) ? read_text(log) : "");
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_object()) ++counts[entry.value("verdict", "")];
  }
  return counts;
}

// The comments with which the reducer starts a result: the failure, and how to see it.
std::vector<std::string> remarks(const std::string& text) {
  constexpr std::string_view kMark = "# assay reduce: ";
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kMark)) found.push_back(line.substr(kMark.size()));
  }
  return found;
}

nlohmann::json describe_reduction(const fs::path& directory) {
  const fs::path file = directory / "repro.py";
  const repro::ReproFile repro = repro::read_repro_file(file);
  nlohmann::json others = nlohmann::json::array();
  if (fs::exists(directory / "other")) {
    for (const auto& entry : fs::directory_iterator(directory / "other")) {
      if (entry.path().extension() == ".py") others.push_back(entry.path().string());
    }
  }
  return {{"file", file.string()},
          {"remarks", remarks(read_text(file))},
          {"code", graph::print(*repro.graph)},
          {"verdicts", count_verdicts(directory / "verdicts.jsonl")},
          {"other", std::move(others)}};
}

void print_reduction(const nlohmann::json& report) {
  std::printf("# The smallest program that fails the same way\n\n");
  for (const nlohmann::json& remark : report["remarks"]) {
    std::printf("- %s\n", remark.get<std::string>().c_str());
  }
  std::printf("\n```python\n%s```\n\n", report["code"].get<std::string>().c_str());
  std::string counts;
  for (const auto& [verdict, count] : report["verdicts"].items()) {
    counts += (counts.empty() ? "" : ", ") + std::to_string(count.get<int>()) + " " + verdict;
  }
  std::printf("It is `%s`. Trials: %s.\n", report["file"].get<std::string>().c_str(),
              counts.c_str());
  for (const nlohmann::json& other : report["other"]) {
    std::printf("Another failure was found: `%s`\n", other.get<std::string>().c_str());
  }
}

}  // namespace

int report(const std::filesystem::path& directory, bool json) {
  // A diagnosis has written its report itself.
  const fs::path written = directory / (json ? "history.json" : "report.md");
  if (fs::exists(written)) {
    const std::string text = read_text(written);
    (void)std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  if (!fs::exists(directory / "reduction.json") || !fs::exists(directory / "repro.py")) {
    throw UserError(
        directory.string() + " is not a directory that a finished diagnosis or reduction has left",
        "assay diagnose SCRIPT and assay reduce FILE print its name");
  }
  const nlohmann::json found = describe_reduction(directory);
  if (json) {
    using Handler = nlohmann::json::error_handler_t;
    std::printf("%s\n", found.dump(2, ' ', false, Handler::replace).c_str());
  } else {
    print_reduction(found);
  }
  return 0;
}

}  // namespace assay::cli
