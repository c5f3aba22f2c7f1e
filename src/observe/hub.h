// The room's state, in one place behind one lock. Private to src/observe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "observe/chrome_trace.h"
#include "observe/event.h"
#include "observe/log_writer.h"
#include "observe/subscribe.h"
#include "observe/timings.h"

namespace assay::observe {

/// One subscribed callback.
struct Subscriber {
  std::function<void(const Event&)> callback;
  Interest interest;
  bool active = true;           // under the hub's lock
  std::atomic<int> running{0};  // calls under way; raised under the hub's lock
};

/// All consumers. No code of another room is ever called while `mutex` is held.
struct Hub {
  std::mutex mutex;
  LogWriter writer;
  Timings timings;
  bool timings_asked = false;     // Settings::timings
  bool collects_timings = false;  // kept by set_gates()
  int quiet = 0;                  // how many QuietScope there are
  std::optional<ChromeTrace> trace;
  std::vector<std::shared_ptr<Subscriber>> subscribers;
};

/// The hub. It is never destroyed, so events may come until the very end of the process. A fork
/// waits until the lock is free; the child leaves the trace to its parent.
Hub& hub();

/// Recomputes what wants(), wants_event() and Phase let through. Call it with the lock held after
/// every change of a consumer.
void set_gates(Hub& hub);

/// Calls the subscribers that want the event. Call it without the lock.
void notify_subscribers(Hub& hub, const Event& event);

/// Counts an event that was lost.
void count_dropped_event() noexcept;

/// After a fork: forget calls that were under way on threads the child does not have.
void forget_other_threads(Hub& hub);

}  // namespace assay::observe
