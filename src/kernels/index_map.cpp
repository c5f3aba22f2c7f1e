#include "kernels/index_map.h"

#include <algorithm>

#include "kernels/loop_edit.h"

namespace assay::kernels {

namespace {

// A loop of the writer, and what is known of its variable as a function of the reader's loops:
// `linear` plus an offset, where `linear` is between `low` and `high`.
struct Digit {
  std::size_t loop = 0;
  std::int64_t stride = 0;
  std::int64_t size = 0;
  Index linear;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// The writer's loops by stride, largest first. Empty optional if two points write one element.
std::optional<std::vector<Digit>> make_digits(const Index& written, const Sizes& loops) {
  std::vector<Digit> digits;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i] == 0) return std::nullopt;
    if (loops[i] == 1) continue;
    if (written.coefficient(i) <= 0) return std::nullopt;
    Digit& digit = digits.emplace_back();
    digit.loop = i;
    digit.stride = written.coefficient(i);
    digit.size = loops[i];
  }
  std::ranges::sort(digits, std::greater<>(), &Digit::stride);
  std::int64_t reach = 0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (digit->stride <= reach) return std::nullopt;
    reach += digit->stride * (digit->size - 1);
  }
  return digits;
}

void set_coefficient(Index& index, std::size_t variable, std::int64_t value) {
  if (index.coefficients.size() <= variable) index.coefficients.resize(variable + 1, 0);
  index.coefficients[variable] = value;
}

// Spreads the reader's strides over the digits.
bool spread_strides(std::vector<Digit>& digits, const Index& read, const Sizes& loops) {
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const std::int64_t stride = read.coefficient(i);
    if (stride == 0 || loops[i] == 1) continue;
    const std::int64_t sign = stride < 0 ? -1 : 1;
    std::int64_t left = stride * sign;
    for (Digit& digit : digits) {
      const std::int64_t steps = left / digit.stride;
      if (steps == 0) continue;
      left -= steps * digit.stride;
      set_coefficient(digit.linear, i, sign * steps);
      (sign < 0 ? digit.low : digit.high) += sign * steps * (loops[i] - 1);
    }
    if (left != 0) return false;
  }
  return true;
}

bool same_linear(const Index& left, const Index& right, const Sizes& loops) {
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i] > 1 && left.coefficient(i) != right.coefficient(i)) return false;
  }
  return true;
}

// What is loaded only where a condition holds is within its bounds.
void apply_conditions(std::vector<Digit>& digits, std::span<const Condition> conditions,
                      const Sizes& loops) {
  for (Digit& digit : digits) {
    for (const Condition& condition : conditions) {
      if (digit.low == digit.high || !same_linear(condition.index, digit.linear, loops)) continue;
      digit.low = std::max(digit.low, condition.lower - condition.index.offset);
      digit.high = std::min(digit.high, condition.upper - 1 - condition.index.offset);
    }
    digit.high = std::max(digit.high, digit.low);
  }
}

// The loop of the reader that runs through more than one loop of the writer, if it can be cut.
std::optional<LoopSplit> find_split(const Digit& digit, const Sizes& loops) {
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const std::int64_t steps = std::abs(digit.linear.coefficient(i));
    if (steps == 0 || steps * (loops[i] - 1) < digit.size || digit.size % steps != 0) continue;
    const std::int64_t size = digit.size / steps;
    if (size > 1 && size < loops[i] && loops[i] % size == 0) return LoopSplit{i, size};
  }
  return std::nullopt;
}

// Every element that is written is read: as many are read as are written, and no two points of the
// loops that matter read the same one.
bool reads_all(const Index& read, const Sizes& loops, std::int64_t written) {
  std::vector<std::pair<std::int64_t, std::int64_t>> strides;  // and sizes
  std::int64_t count = 1;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i] == 1 || read.coefficient(i) == 0) continue;
    strides.emplace_back(std::abs(read.coefficient(i)), loops[i]);
    count *= loops[i];
  }
  std::ranges::sort(strides);
  std::int64_t reach = 0;
  for (const auto& [stride, size] : strides) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return count == written;
}

}  // namespace

InverseResult invert(const Index& written, const Sizes& written_loops, const Index& read,
                     const Sizes& read_loops, std::span<const Condition> conditions) {
  auto digits = make_digits(written, written_loops);
  if (!digits || !spread_strides(*digits, read, read_loops)) return {};
  apply_conditions(*digits, conditions, read_loops);
  std::int64_t offset = read.offset - written.offset;
  for (const Digit& digit : *digits) offset += digit.stride * digit.low;
  if (offset < 0) return {};
  LoopMap map;
  map.variables.resize(written_loops.size());
  map.distinct = 1;
  std::int64_t written_points = 1;
  for (std::int64_t size : written_loops) written_points *= size;
  map.covers = conditions.empty() && reads_all(read, read_loops, written_points);
  for (Digit& digit : *digits) {
    const std::int64_t lowest = offset / digit.stride;
    offset %= digit.stride;
    const std::int64_t span = digit.high - digit.low;
    if (lowest + span >= digit.size) return {std::nullopt, find_split(digit, read_loops)};
    map.distinct *= span + 1;
    digit.linear.offset = lowest - digit.low;
    map.variables[digit.loop] = std::move(digit.linear);
  }
  if (offset != 0) return {};
  return {std::move(map), std::nullopt};
}

}  // namespace assay::kernels
