#include "base/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace assay::base {

namespace {

// The name may come from a hostile file and be megabytes long; no known one is.
constexpr std::size_t kLongestName = 256;

// Smaller is better; nothing if the candidate does not resemble the name.
std::optional<std::size_t> rank(std::string_view name, std::string_view candidate) {
  const std::size_t furthest = std::max<std::size_t>(2, name.size() / 3);
  const std::size_t distance = edit_distance(name, candidate);
  // A name that was not typed to its end ("graph_br") is as good a hint as a misspelled one.
  if (name.size() > 2 && candidate.starts_with(name)) return std::min(distance, furthest);
  if (distance <= furthest && distance < candidate.size()) return distance;
  return std::nullopt;
}

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t substituted = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

std::vector<std::string_view> nearest_names(std::string_view name,
                                            std::span<const std::string_view> known,
                                            std::size_t count) {
  if (name.size() > kLongestName) return {};
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const std::string_view candidate : known) {
    if (const auto distance = rank(name, candidate)) ranked.emplace_back(*distance, candidate);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string_view> best;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) best.push_back(ranked[i].second);
  return best;
}

std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& known,
                                       std::size_t count) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  const auto nearest = nearest_names(name, std::span<const std::string_view>(views), count);
  return {nearest.begin(), nearest.end()};
}

}  // namespace assay::base
