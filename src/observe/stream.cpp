#include "observe/stream.h"

#include <unistd.h>

#include <exception>

#include "observe/clock.h"
#include "observe/hub.h"

namespace assay::observe {
namespace {

constinit std::atomic<std::int64_t> dropped{0};

}  // namespace

Event make_event(Kind kind, Channel channel, Level level, const SourceLocation& location) noexcept {
  Event event{.kind = kind,
              .channel = channel,
              .level = level,
              .name = {},
              .message = {},
              .fields = {},
              .location = location};
  event.monotonic_nanoseconds = monotonic_now();
  event.wall_nanoseconds = wall_now();
  event.process = ::getpid();
  event.thread = ::gettid();
  return event;
}

void emit(const Event& event) noexcept {
  try {
    Hub& consumers = hub();
    bool any_subscriber = false;
    {
      const std::lock_guard lock(consumers.mutex);
      consumers.writer.consume(event);
      if (consumers.collects_timings) consumers.timings.consume(event);
      if (consumers.trace && consumers.trace->is_of_this_process()) consumers.trace->consume(event);
      any_subscriber = !consumers.subscribers.empty();
    }
    if (any_subscriber) notify_subscribers(consumers, event);
  } catch (const std::exception&) {
    count_dropped_event();  // out of memory in a consumer: the program itself goes on
  }
}

void count_dropped_event() noexcept { dropped.fetch_add(1, std::memory_order_relaxed); }

std::int64_t dropped_events() noexcept { return dropped.load(std::memory_order_relaxed); }

}  // namespace assay::observe
