#include "observe/event.h"

#include <charconv>

namespace assay::observe {

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::message:
      return "message";
    case Kind::artifact:
      return "artifact";
    case Kind::phase_begin:
      return "phase_begin";
    case Kind::phase_end:
      return "phase_end";
    case Kind::frame_start:
      return "frame_start";
    case Kind::frame_end:
      return "frame_end";
    case Kind::graph_break:
      return "graph_break";
    case Kind::guard_failure:
      return "guard_failure";
    case Kind::recompile:
      return "recompile";
    case Kind::pass:
      return "pass";
    case Kind::kernel_compile:
      return "kernel_compile";
    case Kind::run:
      return "run";
    case Kind::failure:
      return "failure";
  }
  return "unknown";
}

std::string field_text(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  char digits[32];  // the shortest form of a double has at most 24 characters
  const auto written = std::to_chars(digits, digits + sizeof digits, std::get<double>(value));
  return {digits, written.ptr};
}

const FieldValue* Event::find_field(std::string_view field_name) const {
  for (const Field& candidate : fields) {
    if (candidate.name == field_name) return &candidate.value;
  }
  return nullptr;
}

}  // namespace assay::observe
