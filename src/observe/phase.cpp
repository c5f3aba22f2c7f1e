#include "observe/phase.h"

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "observe/hub.h"

namespace assay::observe {

struct Phase::Running {
  std::string name;
  Component component;
  SourceLocation location;
  Running* outer;
  std::int64_t started_nanoseconds;
  std::int64_t nested_nanoseconds = 0;
  std::vector<Field> fields = {};
};

thread_local Phase::Running* Phase::innermost_ = nullptr;

void Phase::begin(std::string_view name, Component component,
                  const SourceLocation& location) noexcept {
  try {
    Event event = make_event(Kind::phase_begin, component, Level::debug, location);
    event.name = name;
    running_.reset(
        new Running{event.name, component, location, innermost_, event.monotonic_nanoseconds});
    innermost_ = running_.get();
    emit(event);
  } catch (const std::exception&) {
    count_dropped_event();  // out of memory: the scope runs on, untimed
  }
}

void Phase::add_field(std::string_view name, FieldValue value) {
  running_->fields.push_back({std::string(name), std::move(value)});
}

void Phase::End::operator()(Running* running) const noexcept {
  const std::unique_ptr<Running> owned(running);
  // Normally this phase is the innermost one. If phases were held in objects that died in another
  // order it is somewhere further out, and has to leave the chain all the same.
  Running** link = &innermost_;
  while (*link != nullptr && *link != running) link = &(*link)->outer;
  if (*link != nullptr) *link = running->outer;

  Event event = make_event(Kind::phase_end, running->component, Level::debug, running->location);
  event.name = std::move(running->name);
  event.fields = std::move(running->fields);
  event.duration_nanoseconds = event.monotonic_nanoseconds - running->started_nanoseconds;
  event.nested_nanoseconds = running->nested_nanoseconds;
  if (running->outer != nullptr) running->outer->nested_nanoseconds += event.duration_nanoseconds;
  emit(event);
}

}  // namespace assay::observe
