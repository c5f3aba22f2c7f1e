#include "observe/subscribe.h"

#include <algorithm>
#include <exception>
#include <string>

#include "observe/hub.h"
#include "observe/stream.h"

namespace assay::observe {
namespace {

/// The subscriber whose callback runs on this thread, if any.
thread_local const Subscriber* running_here = nullptr;

void report_exception(const std::string& what) {
  log(Component::observe, Level::error, [&] { return "a subscriber of events threw: " + what; });
}

/// Marks a callback as under way on this thread; `running` was raised before.
class Call {
 public:
  explicit Call(Subscriber& subscriber) : subscriber_(subscriber) { running_here = &subscriber; }
  ~Call() {
    running_here = nullptr;
    subscriber_.running.fetch_sub(1);
    subscriber_.running.notify_all();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Subscriber& subscriber_;
};

void call(Subscriber& subscriber, const Event& event) {
  const Call under_way(subscriber);
  try {
    subscriber.callback(event);
  } catch (const std::exception& error) {
    report_exception(error.what());
  } catch (...) {
    report_exception("something that is not a std::exception");
  }
}

bool is_text(const Event& event) {
  return event.kind == Kind::message || event.kind == Kind::artifact;
}

}  // namespace

void notify_subscribers(Hub& hub, const Event& event) {
  if (running_here != nullptr) return;  // caused by a callback: would go round in circles
  std::vector<std::shared_ptr<Subscriber>> subscribers;
  {
    const std::lock_guard lock(hub.mutex);
    subscribers = hub.subscribers;
  }
  for (const auto& subscriber : subscribers) {
    if (subscriber->interest == Interest::events && is_text(event)) continue;
    {
      // An earlier callback, or another thread, may have ended this subscription meanwhile.
      const std::lock_guard lock(hub.mutex);
      if (!subscriber->active) continue;
      subscriber->running.fetch_add(1);
    }
    call(*subscriber, event);
  }
}

void forget_other_threads(Hub& hub) {
  for (const auto& subscriber : hub.subscribers) {
    subscriber->running.store(subscriber.get() == running_here ? 1 : 0);
  }
}

Subscription subscribe(std::function<void(const Event&)> callback, Interest interest) {
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->callback = std::move(callback);
  subscriber->interest = interest;
  Hub& shared = hub();
  const std::lock_guard lock(shared.mutex);
  shared.subscribers.push_back(subscriber);
  set_gates(shared);
  return Subscription(std::move(subscriber));
}

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this != &other) {
    reset();
    subscriber_ = std::move(other.subscriber_);
  }
  return *this;
}

void Subscription::reset() noexcept {
  if (!subscriber_) return;
  {
    Hub& shared = hub();
    const std::lock_guard lock(shared.mutex);
    subscriber_->active = false;
    std::erase(shared.subscribers, subscriber_);
    set_gates(shared);
  }
  const int own = subscriber_.get() == running_here ? 1 : 0;
  for (int running = subscriber_->running.load(); running > own;
       running = subscriber_->running.load()) {
    subscriber_->running.wait(running);
  }
  subscriber_.reset();
}

}  // namespace assay::observe
