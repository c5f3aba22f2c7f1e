// How an event looks as log lines: the glog-style prefix of stock PyTorch, or TORCH_LOGS_FORMAT.
// Used by LogWriter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "observe/event.h"

namespace assay::observe {

/// "DEBUG", "INFO", "WARNING" or "ERROR".
std::string_view level_name(Level level);

/// A source path from the repository's root: "src/graph/graph.cpp", however it was compiled.
std::string_view short_source_path(std::string_view path);

/// Turns events into text.
class LogFormat {
 public:
  /// The default: `I1115 21:38:45.289123 2500 src/graph/parse.cpp:42] [parse] message`, with the
  /// prefix on every line of a message. Artifacts show as `[__graph_code]`, as in stock.
  LogFormat() = default;

  /// Python's %-style, for example "%(levelname)s: %(message)s". `short` and `basic` mean
  /// "%(levelname)s:%(name)s:%(message)s"; an empty text is the default format.
  /// Throws SettingsError, naming `variable`, for a key or conversion that does not exist.
  explicit LogFormat(std::string_view text, std::string_view variable = "TORCH_LOGS_FORMAT");

  /// All lines of the event, each ended by a newline.
  std::string operator()(const Event& event) const;

 private:
  enum class Key {
    literal,
    levelname,
    levelno,
    message,
    name,
    pathname,
    filename,
    lineno,
    asctime,
    process,
    thread
  };
  struct Piece {
    Key key;
    std::string literal;
    std::size_t width = 0;
    bool left_aligned = false;
  };

  static Key key_named(std::string_view name, std::string_view variable);
  static std::string value_of(Key key, const Event& event);

  std::vector<Piece> pieces_;  // empty: the default format
};

}  // namespace assay::observe
