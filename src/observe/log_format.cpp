#include "observe/log_format.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "observe/log_names.h"
#include "observe/settings_error.h"

namespace assay::observe {
namespace {

char level_letter(Level level) {
  // V stands for "verbose", the debug level of glog.
  return level == Level::debug ? 'V' : level_name(level).front();
}

/// Local time through strftime: Python's logging shows local time too.
std::string local_time(std::int64_t wall_nanoseconds, const char* format) {
  const std::time_t seconds = wall_nanoseconds / 1'000'000'000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

std::string padded_number(std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

/// A field for a log line: quoted if it could be mistaken for more than one.
std::string field_for_line(const FieldValue& value) {
  std::string text = field_text(value);
  const bool plain = !text.empty() && text.find_first_of(" ,=()\"\n") == std::string::npos;
  if (plain || !std::holds_alternative<std::string>(value)) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '\n') {
      quoted += "\\n";
    } else {
      if (letter == '"') quoted += '\\';
      quoted += letter;
    }
  }
  return quoted + '"';
}

/// The text of an event: "name: message", or the one it has, and its fields on the first line.
std::string message_of(const Event& event) {
  std::string text = event.name;
  if (!text.empty() && !event.message.empty()) text += ": ";
  text += event.message;
  if (event.fields.empty()) return text;
  std::string fields = text.empty() ? "(" : " (";
  for (const Field& field : event.fields) {
    if (&field != &event.fields.front()) fields += ", ";
    fields += field.name + "=" + field_for_line(field.value);
  }
  return text.insert(std::min(text.find('\n'), text.size()), fields + ")");
}

std::string prefix_of(const Event& event) {
  const std::int64_t microseconds = event.wall_nanoseconds / 1'000 % 1'000'000;
  std::string prefix(1, level_letter(event.level));
  prefix += local_time(event.wall_nanoseconds, "%m%d %H:%M:%S.");
  prefix += padded_number(microseconds, 6) + ' ' + std::to_string(event.process) + ' ';
  prefix += short_source_path(event.location.file_name());
  prefix += ':' + std::to_string(event.location.line()) + "] [";
  if (event.channel.is_artifact()) prefix += "__";
  prefix += log_name(event.channel).name;
  return prefix + "] ";
}

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::debug:
      return "DEBUG";
    case Level::info:
      return "INFO";
    case Level::warning:
      return "WARNING";
    case Level::error:
      return "ERROR";
    case Level::off:
      break;
  }
  return "OFF";
}

std::string_view short_source_path(std::string_view path) {
  std::size_t start = 0;  // of the last of these folders: the checkout may itself lie in a "src"
  for (const std::string_view root : {"/src/", "/tests/", "/include/", "/python/"}) {
    const std::size_t found = path.rfind(root);
    if (found != std::string_view::npos) start = std::max(start, found + 1);
  }
  return path.substr(start);
}

LogFormat::Key LogFormat::key_named(std::string_view name, std::string_view variable) {
  constexpr std::pair<std::string_view, Key> keys[] = {
      {"levelname", Key::levelname}, {"levelno", Key::levelno},   {"message", Key::message},
      {"name", Key::name},           {"pathname", Key::pathname}, {"filename", Key::filename},
      {"lineno", Key::lineno},       {"asctime", Key::asctime},   {"process", Key::process},
      {"thread", Key::thread},
  };
  std::string known;
  for (const auto& [key_name, key] : keys) {
    if (key_name == name) return key;
    known += (known.empty() ? "" : ", ") + std::string(key_name);
  }
  throw SettingsError(std::string(variable) + ": unknown key \"" + std::string(name) +
                      "\"; the keys are " + known + ".");
}

LogFormat::LogFormat(std::string_view text, std::string_view variable) {
  if (text == "short" || text == "basic") text = "%(levelname)s:%(name)s:%(message)s";
  const auto append_literal = [&](char letter) {
    if (pieces_.empty() || pieces_.back().key != Key::literal)
      pieces_.push_back({Key::literal, {}});
    pieces_.back().literal += letter;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      append_literal(text[at]);
      continue;
    }
    if (text.substr(at, 2) == "%%") {
      append_literal(text[++at]);
      continue;
    }
    const std::size_t close = text.find(')', at);
    if (text.substr(at, 2) != "%(" || close == std::string_view::npos) {
      throw SettingsError(std::string(variable) +
                          ": \"%\" must be followed by \"(key)s\" or \"%\".");
    }
    Piece piece{key_named(text.substr(at + 2, close - at - 2), variable), {}};
    at = close + 1;
    if (at < text.size() && text[at] == '-') piece.left_aligned = text[at++] == '-';
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      piece.width = std::min<std::size_t>(piece.width * 10 + std::size_t(text[at] - '0'), 1000);
    }
    if (at >= text.size() || (text[at] != 's' && text[at] != 'd')) {
      throw SettingsError(std::string(variable) + ": a key must end in \"s\" or \"d\", as in" +
                          " \"%(message)s\".");
    }
    pieces_.push_back(std::move(piece));
  }
}

std::string LogFormat::value_of(Key key, const Event& event) {
  switch (key) {
    case Key::literal:
      break;
    case Key::levelname:
      return std::string(level_name(event.level));
    case Key::levelno:
      return std::to_string(static_cast<int>(event.level));
    case Key::message:
      return message_of(event);
    case Key::name:
      return std::string(log_name(event.channel).name);
    case Key::pathname:
      return event.location.file_name();
    case Key::filename: {
      const std::string_view path = event.location.file_name();
      return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 == 0: the whole path
    }
    case Key::lineno:
      return std::to_string(event.location.line());
    case Key::asctime:
      return local_time(event.wall_nanoseconds, "%Y-%m-%d %H:%M:%S,") +
             padded_number(event.wall_nanoseconds / 1'000'000 % 1'000, 3);
    case Key::process:
      return std::to_string(event.process);
    case Key::thread:
      return std::to_string(event.thread);
  }
  return {};
}

std::string LogFormat::operator()(const Event& event) const {
  std::string record;
  if (!pieces_.empty()) {
    for (const Piece& piece : pieces_) {
      const std::string value =
          piece.key == Key::literal ? piece.literal : value_of(piece.key, event);
      const std::size_t padding = piece.width - std::min(piece.width, value.size());
      if (!piece.left_aligned) record.append(padding, ' ');
      record += value;
      if (piece.left_aligned) record.append(padding, ' ');
    }
    return record + '\n';
  }
  const std::string prefix = prefix_of(event);
  const std::string message = message_of(event);
  for (std::size_t begin = 0; begin <= message.size();) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    record += prefix;
    record.append(message, begin, end - begin);
    record += '\n';
    begin = end + 1;
  }
  return record;
}

}  // namespace assay::observe
