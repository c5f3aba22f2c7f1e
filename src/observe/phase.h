// Phase: times the scope it lives in. Feeds compile_times() and the Chrome trace.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>

#include "observe/channel.h"
#include "observe/event.h"
#include "observe/source_location.h"
#include "observe/stream.h"

namespace assay::observe {

/// The time from construction to destruction, under a name such as "parse", "verify" or "run".
/// Phases nest; each must end on the thread that began it. While nobody listens a Phase is one
/// branch here and one at the end.
///   observe::Phase phase("verify", Component::pass_manager);
class Phase {
 public:
  explicit Phase(std::string_view name, Component component = Component::torch,
                 const SourceLocation& location = SourceLocation::current()) noexcept {
    if (gate::phases.load(std::memory_order_relaxed)) begin(name, component, location);
  }
  ~Phase() = default;  // leaves the phase, see Running and End
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  /// Adds a field to the event that ends the phase, for example what was found meanwhile.
  template <class Value>
  void field(std::string_view name, Value&& value) {
    if (!running_) return;
    add_field(name, make_field_value(std::forward<Value>(value)));
  }

 private:
  /// What a phase knows while somebody listens.
  struct Running;
  /// Emits the end of a phase and frees it. Out of line, so that a call site is only a branch.
  struct End {
    void operator()(Running* running) const noexcept;
  };

  void begin(std::string_view name, Component component, const SourceLocation& location) noexcept;
  void add_field(std::string_view name, FieldValue value);

  static thread_local Running* innermost_;
  std::unique_ptr<Running, End> running_;
};

}  // namespace assay::observe
