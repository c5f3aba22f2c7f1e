#include "observe/chrome_trace.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "observe/clock.h"
#include "observe/log_format.h"
#include "observe/log_names.h"
#include "observe/settings_error.h"

namespace assay::observe {
namespace {

using Json = nlohmann::ordered_json;

/// A trace this long fills hundreds of megabytes, more than the viewers load.
constexpr std::size_t most_events = 1'000'000;

Json json_value(const FieldValue& value) {
  if (const auto* number = std::get_if<double>(&value); number && !std::isfinite(*number)) {
    return field_text(value);  // JSON has no nan and no infinity
  }
  return std::visit([](const auto& plain) { return Json(plain); }, value);
}

Json metadata(std::string_view what, int process, int thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

std::string title_of(const Event& event) {
  if (!event.name.empty()) return event.name;
  if (event.message.empty()) return std::string(kind_name(event.kind));
  return event.message.substr(0, event.message.find('\n'));
}

/// The categories a viewer can filter by: the channel and the kind.
std::string categories_of(const Event& event) {
  const bool is_phase = event.kind == Kind::phase_begin || event.kind == Kind::phase_end;
  return std::string(log_name(event.channel).name) + ',' +
         std::string(is_phase ? "phase" : kind_name(event.kind));
}

Json arguments_of(const Event& event) {
  Json arguments = Json::object();
  if (!event.message.empty()) arguments["message"] = event.message;
  for (const Field& field : event.fields) arguments[field.name] = json_value(field.value);
  arguments["source"] = std::string(short_source_path(event.location.file_name())) + ':' +
                        std::to_string(event.location.line());
  return arguments;
}

/// One event of the file, without its kind; times are in microseconds since the trace began.
Json trace_event(const Event& event, const char* kind, std::int64_t started, std::int64_t zero) {
  return {{"ph", kind},
          {"name", title_of(event)},
          {"cat", categories_of(event)},
          {"ts", static_cast<double>(started - zero) / 1e3},
          {"pid", event.process},
          {"tid", event.thread},
          {"args", arguments_of(event)}};
}

Json finished_event(const Event& event, std::int64_t zero) {
  if (event.duration_nanoseconds == 0 && event.kind != Kind::phase_end) {
    Json instant = trace_event(event, "i", event.monotonic_nanoseconds, zero);
    instant["s"] = "t";  // an instant of its thread
    return instant;
  }
  const std::int64_t started = event.monotonic_nanoseconds - event.duration_nanoseconds;
  Json complete = trace_event(event, "X", started, zero);
  complete["dur"] = static_cast<double>(event.duration_nanoseconds) / 1e3;
  return complete;
}

std::string with_process_id(std::string path) {
  const std::size_t mark = path.find("%p");
  return mark == std::string::npos ? path : path.replace(mark, 2, std::to_string(::getpid()));
}

}  // namespace

ChromeTrace::ChromeTrace(std::string path)
    : path_(with_process_id(std::move(path))),
      process_(::getpid()),
      start_nanoseconds_(monotonic_now()) {
  // Opening for append checks the path and leaves an older trace alone until there is a new one.
  errno = 0;
  if (!std::ofstream(path_, std::ios::app)) {
    throw SettingsError("cannot write the trace file \"" + path_ +
                        "\": " + std::generic_category().message(errno));
  }
}

bool ChromeTrace::is_of_this_process() const { return ::getpid() == process_; }

void ChromeTrace::remember_thread(int thread) {
  if (thread_names_.contains(thread)) return;
  char name[16] = "";  // the kernel's limit
  if (thread != process_) ::pthread_getname_np(::pthread_self(), name, sizeof name);
  thread_names_[thread] =
      thread == process_ ? "main" : std::string(name) + " " + std::to_string(thread);
}

void ChromeTrace::consume(const Event& event) {
  remember_thread(event.thread);
  auto& open = open_phases_[event.thread];
  if (event.kind == Kind::phase_begin) {
    open.push_back(event);
    return;
  }
  if (event.kind == Kind::phase_end) {
    const auto begun = std::find_if(open.rbegin(), open.rend(), [&](const Event& candidate) {
      return candidate.name == event.name;
    });
    if (begun != open.rend()) open.erase(std::next(begun).base());
  }
  if (events_.size() < most_events) {
    events_.push_back(event);
  } else {
    ++left_out_;
  }
}

std::string ChromeTrace::to_json() const {
  const auto dump = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text = "{\"displayTimeUnit\":\"ms\",\"otherData\":";
  text += dump({{"producer", "assay"}, {"events_left_out", left_out_}});
  text += ",\"traceEvents\":[\n";
  text += dump(metadata("process_name", process_, process_, program_invocation_short_name));
  for (const auto& [thread, name] : thread_names_) {
    text += ",\n" + dump(metadata("thread_name", process_, thread, name));
  }
  for (const Event& event : events_)
    text += ",\n" + dump(finished_event(event, start_nanoseconds_));
  for (const auto& [thread, phases] : open_phases_) {
    for (const Event& phase : phases) {
      text +=
          ",\n" + dump(trace_event(phase, "B", phase.monotonic_nanoseconds, start_nanoseconds_));
    }
  }
  return text + "\n]}\n";
}

std::string ChromeTrace::write() const {
  if (!is_of_this_process()) return {};
  errno = 0;
  std::ofstream file(path_, std::ios::trunc);
  file << to_json() << std::flush;
  if (file) return {};
  return "cannot write the trace file \"" + path_ + "\": " + std::generic_category().message(errno);
}

}  // namespace assay::observe
