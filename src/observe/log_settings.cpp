#include "observe/log_settings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "observe/log_names.h"

namespace assay::observe {
namespace {

/// The levels a person asked for by name; every other channel follows its parent.
using NamedLevels = std::array<std::optional<Level>, channel_count>;

Level level_of(const LogName& row, const NamedLevels& named) {
  if (const auto& level = named[row.channel.index()]) return *level;
  if (row.off_by_default) return Level::off;
  if (row.channel == Channel(row.parent)) return Level::warning;
  return level_of(log_name(row.parent), named);
}

void resolve(LogLevels& levels, const NamedLevels& named) {
  for (const LogName& row : log_names) levels.levels[row.channel.index()] = level_of(row, named);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '.';
  });
}

/// Stock also takes Python module names; those of the parts that exist here under another name.
const LogName* find_module(std::string_view module) {
  constexpr std::pair<std::string_view, Component> modules[] = {
      {"torch._dynamo", Component::dynamo},
      {"torch._functorch", Component::aot},
      {"torch._inductor", Component::inductor},
      {"torch.autograd", Component::autograd},
      {"torch.fx.experimental.symbolic_shapes", Component::dynamic},
  };
  for (const auto& [prefix, component] : modules) {
    if (!module.starts_with(prefix)) continue;
    if (module.size() == prefix.size() || module[prefix.size()] == '.') return &log_name(component);
  }
  return nullptr;
}

bool does_nothing_here(std::string_view name) {
  return name.find('.') != std::string_view::npos ||
         std::find(stock_only_names.begin(), stock_only_names.end(), name) !=
             stock_only_names.end();
}

[[noreturn]] void refuse_name(std::string_view name, std::string_view variable) {
  std::string message = std::string(variable) + ": unknown name " + quoted(name);
  const auto nearest = nearest_log_names(name);
  for (std::size_t index = 0; index < nearest.size(); ++index) {
    message += index == 0 ? "; did you mean " : " or ";
    message += quoted(nearest[index]);
  }
  message += nearest.empty() ? "." : "?";
  throw SettingsError(message + " " + std::string(variable) + "=help lists all names.");
}

[[noreturn]] void refuse_grammar(std::string_view part, std::string_view text,
                                 std::string_view variable) {
  throw SettingsError(std::string(variable) + ": cannot read " + quoted(part) + " in " +
                      quoted(text) +
                      "; it must be a comma separated list of names, each with an optional + or -"
                      " in front, such as \"+dynamo,aot,-inductor\".");
}

Level signed_level(char sign, bool is_artifact) {
  if (sign == '-') return is_artifact ? Level::off : Level::error;
  if (is_artifact || sign == '+') return Level::debug;
  return Level::info;
}

}  // namespace

LogLevels::LogLevels() { resolve(*this, {}); }

LogLevels parse_logs(std::string_view text, std::string_view variable) {
  LogLevels result;
  const std::string_view settings = trim(text);
  if (settings.empty()) return result;
  if (settings == "help" || settings == "+help") throw HelpRequested(log_help());

  NamedLevels named;
  for (std::size_t begin = 0; begin <= settings.size();) {
    const std::size_t end = std::min(settings.find(',', begin), settings.size());
    const std::string_view part = trim(settings.substr(begin, end - begin));
    begin = end + 1;

    const bool has_sign = part.starts_with('+') || part.starts_with('-');
    const std::string_view name = has_sign ? part.substr(1) : part;
    if (!is_name(name)) refuse_grammar(part, settings, variable);
    if (name == "help") {
      throw SettingsError(std::string(variable) + ": \"help\" must stand alone.");
    }
    const LogName* row = find_log_name(name);
    if (row == nullptr) row = find_module(name);
    if (row != nullptr) {
      named[row->channel.index()] =
          signed_level(has_sign ? part.front() : ' ', row->channel.is_artifact());
      if (row->not_emitted && !part.starts_with('-')) result.not_emitted.emplace_back(name);
    } else if (does_nothing_here(name)) {
      result.ignored.emplace_back(name);
    } else {
      refuse_name(name, variable);
    }
  }
  resolve(result, named);
  return result;
}

}  // namespace assay::observe
