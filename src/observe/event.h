// Event: the one record that every consumer (logs, timings, Chrome trace, subscribers) reads.
// Emitters do not build it by hand: see stream.h and phase.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "observe/channel.h"
#include "observe/source_location.h"

namespace assay::observe {

/// What happened.
enum class Kind : std::uint8_t {
  message,         ///< a line for a reader
  artifact,        ///< a printed thing: graph, code, guards
  phase_begin,     ///< a Phase was entered
  phase_end,       ///< a Phase was left; carries its duration
  frame_start,     ///< capture of a Python frame begins
  frame_end,       ///< capture of a Python frame is done
  graph_break,     ///< a segment ended early
  guard_failure,   ///< a cached segment did not fit
  recompile,       ///< a segment is compiled again
  pass,            ///< a graph pass ran
  kernel_compile,  ///< a kernel was compiled or found in the cache
  run,             ///< a compiled graph or an operator ran
  failure,         ///< exception, crash, hang or wrong numbers
};

/// "graph_break" for Kind::graph_break, and so on.
std::string_view kind_name(Kind kind);

using FieldValue = std::variant<std::int64_t, double, bool, std::string>;

/// One named value of an event.
struct Field {
  std::string name;
  FieldValue value;
};

/// The value as a reader expects it: `12`, `0.5`, `true`, `text`.
std::string field_text(const FieldValue& value);

/// Makes a FieldValue from any integer, floating point number, bool or string-like value.
template <class Value>
FieldValue make_field_value(Value&& value) {
  using Plain = std::remove_cvref_t<Value>;
  if constexpr (std::same_as<Plain, bool>) {
    return value;
  } else if constexpr (std::integral<Plain>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::floating_point<Plain>) {
    return static_cast<double>(value);
  } else {
    return std::string(std::forward<Value>(value));
  }
}

/// What happened, where, when. `name` is short and stable (a phase, pass or function); `message`
/// is for a reader and may have many lines. Either may be empty.
struct Event {
  Kind kind;
  Channel channel;
  Level level;
  std::string name;
  std::string message;
  std::vector<Field> fields;  ///< in the order they were added
  std::int64_t monotonic_nanoseconds = 0;
  std::int64_t wall_nanoseconds = 0;      ///< since 1970, UTC
  std::int64_t duration_nanoseconds = 0;  ///< of what ended with this event, else 0
  std::int64_t nested_nanoseconds = 0;    ///< of a phase: the part spent in phases inside it
  int process = 0;
  int thread = 0;  ///< the kernel's thread id, as in /proc and in debuggers
  SourceLocation location;

  /// Appends a field; returns the event so that calls can be chained.
  template <class Value>
  Event& field(std::string_view field_name, Value&& value) {
    fields.push_back({std::string(field_name), make_field_value(std::forward<Value>(value))});
    return *this;
  }

  /// The value of the first field with that name, or nullptr.
  const FieldValue* find_field(std::string_view field_name) const;
};

}  // namespace assay::observe
