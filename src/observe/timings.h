// Timings: the consumer behind compile_times(). It adds up the phases of the process.
// Collected while Settings::timings is on, or while `dynamo` logs at INFO.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "observe/event.h"

namespace assay::observe {

/// What is known about the phases of one name. A phase inside a phase counts in both totals;
/// the self times of all names add up to the time that passed.
struct PhaseTiming {
  std::string name;
  std::int64_t count = 0;
  double total_seconds = 0;
  double self_seconds = 0;  ///< without the phases inside
  double shortest_seconds = 0;
  double longest_seconds = 0;
  std::vector<double> runtimes;  ///< in order; only the first most_runtimes
};

/// How many single runtimes are kept per name.
inline constexpr std::size_t most_runtimes = 1000;

/// The sums themselves, without a lock: the hub owns one.
class Timings {
 public:
  void consume(const Event& event);
  void reset();
  /// In the order in which the names were first begun.
  const std::vector<PhaseTiming>& rows() const { return rows_; }

 private:
  PhaseTiming& row_of(const std::string& name);

  std::vector<PhaseTiming> rows_;
  std::unordered_map<std::string, std::size_t> positions_;
};

/// The phases of this process so far.
std::vector<PhaseTiming> phase_timings();

/// Forgets them.
void reset_timings();

/// A table "Function / Runtimes (s)" like that of `torch._dynamo.utils.compile_times()`: every
/// runtime of a phase, or with `aggregate` their sum.
std::string compile_times(bool aggregate = false);

/// One line per phase: name,count,total_seconds,self_seconds,shortest_seconds,longest_seconds.
std::string compile_times_csv();

/// The same as a JSON list of objects, with `runtimes`.
std::string compile_times_json();

}  // namespace assay::observe
