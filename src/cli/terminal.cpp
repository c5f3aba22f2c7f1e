#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/environment.h"

namespace assay::cli {

namespace {

// no-color.org: NO_COLOR counts when it is set to anything but nothing.
bool wants_colour(int stream) {
  return isatty(stream) == 1 && base::environment_variable("NO_COLOR").value_or("").empty();
}

std::string coloured(const std::string& text, const char* code, int stream) {
  if (!wants_colour(stream)) return text;
  return std::string("\033[") + code + "m" + text + "\033[0m";
}

std::string format(const char* pattern, double value, const char* unit) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), pattern, value, unit);
  return buffer.data();
}

}  // namespace

std::string bold(const std::string& text) { return coloured(text, "1", STDOUT_FILENO); }
std::string dim(const std::string& text) { return coloured(text, "2", STDOUT_FILENO); }
std::string red(const std::string& text) { return coloured(text, "31", STDERR_FILENO); }

std::string counted(std::size_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return format("%.1f %s", value, kUnits[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 1e-3) return format("%.1f %s", seconds * 1e6, "us");
  if (seconds < 1) return format("%.2f %s", seconds * 1e3, "ms");
  return format("%.2f %s", seconds, "s");
}

std::string table(const std::vector<std::vector<std::string>>& rows,
                  const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      const bool is_right = std::ranges::find(right, i) != right.end();
      line += (i > 0 ? "  " : "") + (is_right ? padding + row[i] : row[i] + padding);
    }
    while (line.ends_with(' ')) line.pop_back();
    text += "  " + line + "\n";
  }
  return text;
}

}  // namespace assay::cli
