#include "observe/log_names.h"

#include <algorithm>

#include "base/nearest_names.h"

namespace assay::observe {
namespace {

consteval bool table_follows_the_enums() {
  for (std::size_t index = 0; index < channel_count; ++index) {
    if (log_names[index].channel.index() != index) return false;
    if (!log_names[index].channel.is_artifact() && log_names[index].off_by_default) return false;
  }
  return true;
}
static_assert(table_follows_the_enums(),
              "the rows of log_names must be in the order of Component and Artifact");

std::string description_of(const LogName& row) {
  return std::string(row.description) + (row.not_emitted ? " (not yet)" : "");
}

void append_padded(std::string& text, std::string_view word, std::size_t width) {
  text += word;
  text.append(width - word.size() + 2, ' ');
}

}  // namespace

std::string_view kind_of(const LogName& row) {
  return row.channel.is_artifact() ? "artifact" : "component";
}

const LogName* find_log_name(std::string_view name) {
  if (name == "all") name = "torch";
  const auto row = std::find_if(log_names.begin(), log_names.end(),
                                [&](const LogName& candidate) { return candidate.name == name; });
  return row == log_names.end() ? nullptr : &*row;
}

std::vector<std::string_view> nearest_log_names(std::string_view name) {
  std::vector<std::string_view> known = {"all"};
  for (const LogName& row : log_names) known.push_back(row.name);
  return base::nearest_names(name, known);
}

std::string render_log_names() {
  std::size_t name_width = 0;
  std::size_t parent_width = 0;
  for (const LogName& row : log_names) {
    name_width = std::max(name_width, row.name.size());
    parent_width = std::max(parent_width, log_name(row.parent).name.size());
  }
  std::string text;
  const auto append_line = [&](std::string_view name, std::string_view kind,
                               std::string_view parent, std::string_view named_only,
                               std::string_view description) {
    append_padded(text, name, name_width);
    append_padded(text, kind, std::string_view("component").size());
    append_padded(text, parent, parent_width);
    append_padded(text, named_only, std::string_view("by name only").size());
    text += description;
    text += '\n';
  };
  append_line("name", "kind", "parent", "switched on", "what it shows");
  for (const LogName& row : log_names) {
    const bool is_root = row.channel == Channel(row.parent);
    const std::string_view follows = is_root ? "" : "with parent";
    append_line(row.name, kind_of(row), is_root ? "" : log_name(row.parent).name,
                row.off_by_default ? "by name only" : follows, description_of(row));
  }
  return text;
}

std::string render_log_names_markdown() {
  std::string text =
      "| name | kind | parent | by name only | what it shows |\n"
      "|---|---|---|---|---|\n";
  for (const LogName& row : log_names) {
    text += "| `" + std::string(row.name) + "` | " + std::string(kind_of(row)) + " | `" +
            std::string(log_name(row.parent).name) + "` | " + (row.off_by_default ? "yes" : "") +
            " | " + description_of(row) + " |\n";
  }
  return text;
}

std::string log_help() {
  std::string text =
      R"(TORCH_LOGS (or ASSAY_LOGS, which wins) is a comma separated list of names.

  name        a component at INFO, or an artifact switched on
  +name       a component at DEBUG
  -name       a component at ERROR, or an artifact switched off
  all         every component that is not named itself

Examples:
  TORCH_LOGS="+dynamo,aot"           capture at DEBUG, aot at INFO
  TORCH_LOGS="-dynamo,+inductor"     only errors of capture, kernels at DEBUG
  TORCH_LOGS="graph_code,aot_graphs" two artifacts
  TORCH_LOGS_OUT=/tmp/log.txt        writes the lines to that file as well
  TORCH_LOGS_FORMAT="%(levelname)s: %(message)s"
                                     own line format; `short` is %(levelname)s:%(name)s:%(message)s

Names marked (not yet) are accepted, but nothing emits them so far.

)";
  return text + render_log_names();
}

}  // namespace assay::observe
