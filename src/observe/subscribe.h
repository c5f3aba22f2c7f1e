// Listening to the stream from inside the process: tests, `explain`, reports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "observe/event.h"

namespace assay::observe {

/// What a subscriber is given. `events` leaves out messages and artifact texts, and so does not
/// make anybody format them.
enum class Interest : std::uint8_t { events, everything };

struct Subscriber;

/// Keeps a callback subscribed for as long as it lives.
class Subscription {
 public:
  Subscription() = default;
  ~Subscription() { reset(); }
  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept;

  /// Ends it now. Waits for a call that is under way on another thread; after that the callback
  /// is never called again. A callback may end its own subscription.
  void reset() noexcept;

 private:
  friend Subscription subscribe(std::function<void(const Event&)>, Interest);
  explicit Subscription(std::shared_ptr<Subscriber> subscriber)
      : subscriber_(std::move(subscriber)) {}

  std::shared_ptr<Subscriber> subscriber_;
};

/// Calls `callback` with every event from now on, on the thread that emits it and with no lock
/// held; calls from several threads can overlap. Events that a callback itself causes go to the
/// other consumers but to no subscriber. An exception from a callback is logged as an error.
[[nodiscard]] Subscription subscribe(std::function<void(const Event&)> callback,
                                     Interest interest = Interest::everything);

}  // namespace assay::observe
