#include "cli/profile_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/terminal.h"

namespace assay::cli {

namespace {

double seconds_per_call(const kernels::ProfiledStep& step) {
  return 1e-9 * static_cast<double>(step.nanoseconds) /
         static_cast<double>(std::max<std::int64_t>(step.calls, 1));
}

double gigabytes_per_second(const kernels::ProfiledStep& step) {
  const double seconds = seconds_per_call(step);
  return seconds > 0 ? 1e-9 * static_cast<double>(step.bytes) / seconds : 0;
}

std::string number(const char* format, double value) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

double total_of(const std::vector<kernels::ProfiledStep>& steps) {
  double total = 0;
  for (const auto& step : steps) total += static_cast<double>(step.nanoseconds);
  return std::max(total, 1.0);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : ", ") + line;
  return text;
}

void sort_by_time(std::vector<kernels::ProfiledStep>& steps) {
  std::ranges::stable_sort(steps, std::greater(), &kernels::ProfiledStep::nanoseconds);
}

}  // namespace

std::string profile_table(std::vector<kernels::ProfiledStep> steps) {
  sort_by_time(steps);
  const double total = total_of(steps);
  std::vector<std::vector<std::string>> rows = {
      {"graph", "step", "", "calls", "time", "share", "bytes", "GB/s", "lines"}};
  for (const kernels::ProfiledStep& step : steps) {
    rows.push_back({step.graph, step.name, step.is_kernel ? "kernel" : "extern",
                    std::to_string(step.calls), human_seconds(seconds_per_call(step)),
                    number("%.1f%%", 100 * static_cast<double>(step.nanoseconds) / total),
                    human_bytes(static_cast<std::uint64_t>(step.bytes)),
                    number("%.1f", gigabytes_per_second(step)), joined(step.lines)});
  }
  return table(rows, {3, 4, 5, 6, 7});
}

nlohmann::json profile_json(std::vector<kernels::ProfiledStep> steps) {
  sort_by_time(steps);
  const double total = total_of(steps);
  auto list = nlohmann::json::array();
  for (const kernels::ProfiledStep& step : steps) {
    list.push_back({{"graph", step.graph},
                    {"step", step.name},
                    {"kind", step.is_kernel ? "kernel" : "extern"},
                    {"calls", step.calls},
                    {"seconds", seconds_per_call(step)},
                    {"share", static_cast<double>(step.nanoseconds) / total},
                    {"bytes", step.bytes},
                    {"gb_per_s", gigabytes_per_second(step)},
                    {"lines", step.lines}});
  }
  return list;
}

}  // namespace assay::cli
