// How an event enters the stream. At a call site whose event nobody wants, all of this is one
// relaxed load and one branch: no message is made, nothing is allocated.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "observe/channel.h"
#include "observe/event.h"
#include "observe/source_location.h"

namespace assay::observe {

/// The lowest level that some consumer wants, per channel. Written by configure() and subscribe()
/// only; read through wants(), wants_event() and Phase.
namespace gate {
using Thresholds = std::array<std::atomic<std::uint8_t>, channel_count>;
extern Thresholds messages;
extern Thresholds events;
extern std::atomic<bool> phases;
}  // namespace gate

/// Whether a message or artifact text on this channel would reach anybody.
inline bool wants(Channel channel, Level level) noexcept {
  return static_cast<std::uint8_t>(level) >=
         gate::messages[channel.index()].load(std::memory_order_relaxed);
}

/// Whether an artifact would reach anybody (artifacts are of level debug, as in stock PyTorch).
inline bool wants(Artifact artifact) noexcept { return wants(artifact, Level::debug); }

/// Whether an event with structure (any kind but message, artifact and phases) would reach anybody.
inline bool wants_event(Channel channel, Level level) noexcept {
  return static_cast<std::uint8_t>(level) >=
         gate::events[channel.index()].load(std::memory_order_relaxed);
}

/// An event stamped with time, process and thread, ready to be filled and emitted.
Event make_event(Kind kind, Channel channel, Level level, const SourceLocation& location) noexcept;

/// Gives an event to every consumer that wants it. Never throws: if memory runs out the event is
/// lost and counted in dropped_events().
void emit(const Event& event) noexcept;

/// How many events were lost because a consumer failed.
std::int64_t dropped_events() noexcept;

/// Logs the text that `make` returns; `make` is only called if somebody wants it:
///   observe::log(Component::reduce, Level::info, [&] { return "kept " + name; });
template <std::invocable Make>
requires std::convertible_to<std::invoke_result_t<Make>, std::string>
void log(Channel channel, Level level, Make&& make,
         const SourceLocation& location = SourceLocation::current()) {
  if (!wants(channel, level)) return;
  const Kind kind = channel.is_artifact() ? Kind::artifact : Kind::message;
  Event event = make_event(kind, channel, level, location);
  event.message = std::invoke(std::forward<Make>(make));
  emit(event);
}

/// The same for a text that costs nothing to make.
inline void log(Channel channel, Level level, std::string_view text,
                const SourceLocation& location = SourceLocation::current()) {
  log(
      channel, level, [text] { return std::string(text); }, location);
}

/// Prints an artifact if it is switched on:
///   observe::artifact(Artifact::graph_code, [&] { return graph.to_text(); });
template <std::invocable Make>
requires std::convertible_to<std::invoke_result_t<Make>, std::string>
void artifact(Artifact artifact, Make&& make,
              const SourceLocation& location = SourceLocation::current()) {
  log(artifact, Level::debug, std::forward<Make>(make), location);
}

/// Emits an event with structure; `fill` is only called if somebody wants it:
///   observe::event(Kind::graph_break, Artifact::graph_breaks, Level::debug, [&](Event& event) {
///     event.name = function_name;
///     event.message = reason;
///     event.field("line", line);
///   });
template <std::invocable<Event&> Fill>
void event(Kind kind, Channel channel, Level level, Fill&& fill,
           const SourceLocation& location = SourceLocation::current()) {
  if (!wants_event(channel, level)) return;
  Event filled = make_event(kind, channel, level, location);
  std::invoke(std::forward<Fill>(fill), filled);
  emit(filled);
}

}  // namespace assay::observe
