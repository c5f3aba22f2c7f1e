#include "observe/timings.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

namespace assay::observe {
namespace {

std::string seconds_text(double seconds, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, seconds);
  return text;
}

std::string runtimes_text(const PhaseTiming& row, bool aggregate) {
  if (aggregate) return seconds_text(row.total_seconds, 4);
  std::string text;
  for (const double seconds : row.runtimes) {
    text += (text.empty() ? "" : ", ") + seconds_text(seconds, 4);
  }
  const auto shown = static_cast<std::int64_t>(row.runtimes.size());
  if (row.count > shown) text += ", ... (" + std::to_string(row.count - shown) + " more)";
  return text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char letter : text) {
    cell += letter;
    if (letter == '"') cell += letter;
  }
  return cell + '"';
}

}  // namespace

PhaseTiming& Timings::row_of(const std::string& name) {
  const auto [position, is_new] = positions_.try_emplace(name, rows_.size());
  if (is_new) {
    rows_.emplace_back();
    rows_.back().name = name;
  }
  return rows_[position->second];
}

void Timings::consume(const Event& event) {
  if (event.kind == Kind::phase_begin) row_of(event.name);
  if (event.kind != Kind::phase_end) return;
  PhaseTiming& row = row_of(event.name);
  const double seconds = static_cast<double>(event.duration_nanoseconds) * 1e-9;
  row.shortest_seconds = row.count == 0 ? seconds : std::min(row.shortest_seconds, seconds);
  row.longest_seconds = std::max(row.longest_seconds, seconds);
  row.count += 1;
  row.total_seconds += seconds;
  row.self_seconds +=
      static_cast<double>(event.duration_nanoseconds - event.nested_nanoseconds) * 1e-9;
  if (row.runtimes.size() < most_runtimes) row.runtimes.push_back(seconds);
}

void Timings::reset() {
  rows_.clear();
  positions_.clear();
}

std::string compile_times(bool aggregate) {
  constexpr std::string_view name_heading = "Function";
  constexpr std::string_view runtimes_heading = "Runtimes (s)";
  const std::vector<PhaseTiming> rows = phase_timings();
  std::size_t name_width = name_heading.size();
  std::size_t runtimes_width = runtimes_heading.size();
  std::vector<std::string> runtimes;
  for (const PhaseTiming& row : rows) {
    runtimes.push_back(runtimes_text(row, aggregate));
    name_width = std::max(name_width, row.name.size());
    runtimes_width = std::max(runtimes_width, runtimes.back().size());
  }
  const auto padding = [&](std::string_view name) {
    return std::string(name_width - name.size() + 2, ' ');
  };
  std::string text = "Assay compilation metrics:\n";
  text.append(name_heading).append(padding(name_heading)).append(runtimes_heading).append("\n");
  text.append(name_width, '-').append("  ").append(runtimes_width, '-');
  for (std::size_t index = 0; index < rows.size(); ++index) {
    text.append("\n").append(rows[index].name).append(padding(rows[index].name));
    text.append(runtimes[index]);
  }
  return text;
}

std::string compile_times_csv() {
  std::string text = "name,count,total_seconds,self_seconds,shortest_seconds,longest_seconds\n";
  for (const PhaseTiming& row : phase_timings()) {
    text += csv_cell(row.name) + ',' + std::to_string(row.count);
    for (const double seconds :
         {row.total_seconds, row.self_seconds, row.shortest_seconds, row.longest_seconds}) {
      text += ',' + seconds_text(seconds, 6);
    }
    text += '\n';
  }
  return text;
}

std::string compile_times_json() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PhaseTiming& row : phase_timings()) {
    rows.push_back({{"name", row.name},
                    {"count", row.count},
                    {"total_seconds", row.total_seconds},
                    {"self_seconds", row.self_seconds},
                    {"shortest_seconds", row.shortest_seconds},
                    {"longest_seconds", row.longest_seconds},
                    {"runtimes", row.runtimes}});
  }
  return rows.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace assay::observe
