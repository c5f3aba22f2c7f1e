// The two clocks of the room, as plain numbers so that headers need no <chrono>.
#pragma once

#include <time.h>

#include <cstdint>

namespace assay::observe {

inline std::int64_t clock_nanoseconds(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// For durations; never goes back.
inline std::int64_t monotonic_now() noexcept { return clock_nanoseconds(CLOCK_MONOTONIC); }

/// For people: since 1970, UTC.
inline std::int64_t wall_now() noexcept { return clock_nanoseconds(CLOCK_REALTIME); }

}  // namespace assay::observe
