#include "observe/hub.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "observe/log_names.h"
#include "observe/stream.h"

namespace assay::observe {
namespace gate {
namespace {

/// The thresholds before anything is configured, known at compile time so that events from other
/// rooms' static initialisers meet a ready gate. Equal to LogLevels(): a test compares them.
template <std::size_t... Index>
consteval Thresholds initial(std::index_sequence<Index...>) {
  return {std::atomic<std::uint8_t>(
      static_cast<std::uint8_t>(log_names[Index].off_by_default ? Level::off : Level::warning))...};
}

}  // namespace

constinit Thresholds messages = initial(std::make_index_sequence<channel_count>{});
constinit Thresholds events = initial(std::make_index_sequence<channel_count>{});
constinit std::atomic<bool> phases{false};

}  // namespace gate

namespace {

/// As in stock, `dynamo` at INFO tells at exit where the time went (configure.cpp).
bool tells_timings(const LogLevels& levels) { return levels.of(Component::dynamo) <= Level::info; }

Hub& make_hub() {
  static Hub& made = *new Hub;  // never destroyed, see hub()
  ::pthread_atfork([] { made.mutex.lock(); }, [] { made.mutex.unlock(); },
                   [] {
                     forget_other_threads(made);
                     set_gates(made);  // the trace is the parent's
                     made.mutex.unlock();
                   });
  return made;
}

}  // namespace

Hub& hub() {
  static Hub& instance = make_hub();
  return instance;
}

void set_gates(Hub& hub) {
  const bool any_subscriber = !hub.subscribers.empty();
  const bool any_reader = std::any_of(
      hub.subscribers.begin(), hub.subscribers.end(),
      [](const auto& subscriber) { return subscriber->interest == Interest::everything; });
  const bool any_event = any_subscriber || (hub.trace && hub.trace->is_of_this_process());
  hub.collects_timings = hub.timings_asked || tells_timings(hub.writer.levels());
  for (const LogName& row : log_names) {
    const Level logged = hub.writer.levels().of(row.channel);
    const auto threshold = [&](bool all) {
      const Level lowest = all ? Level::debug : logged;
      return static_cast<std::uint8_t>(hub.quiet > 0 ? Level::off : lowest);
    };
    gate::messages[row.channel.index()].store(threshold(any_reader), std::memory_order_relaxed);
    gate::events[row.channel.index()].store(threshold(any_event), std::memory_order_relaxed);
  }
  const bool any_phase = hub.quiet == 0 && (any_event || hub.collects_timings);
  gate::phases.store(any_phase, std::memory_order_relaxed);
}

}  // namespace assay::observe
