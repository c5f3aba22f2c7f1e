/// \file What a row of the table of settings is made of. The table is in config/settings.h.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace assay::config {

enum class Type { boolean, integer, number, choice, text };

/// A type, its default and what else is allowed; made by the functions below.
struct Domain {
  Type type = Type::text;
  std::int64_t default_integer = 0;  ///< Of a boolean, too: 0 or 1.
  double default_number = 0;
  std::string_view default_text = {};
  std::int64_t smallest = 0;
  std::int64_t largest = 0;
  std::string_view choices = {};  ///< `dynamo|aot`
};

constexpr Domain boolean(bool value) {
  return {.type = Type::boolean, .default_integer = value ? 1 : 0};
}
constexpr Domain integer(std::int64_t value, std::int64_t smallest,
                         std::int64_t largest = std::numeric_limits<std::int64_t>::max()) {
  return {
      .type = Type::integer, .default_integer = value, .smallest = smallest, .largest = largest};
}
/// A finite number that is not negative.
constexpr Domain number(double value) { return {.type = Type::number, .default_number = value}; }
/// One of several words, with `|` between them. The empty string is allowed if it is the default,
/// and is None in Python.
constexpr Domain choice(std::string_view value, std::string_view choices) {
  return {.type = Type::choice, .default_text = value, .choices = choices};
}
constexpr Domain text(std::string_view value) {
  return {.type = Type::text, .default_text = value};
}

/// Puts a new value where it takes effect. `source` is what an error message calls the value.
using Push = void (*)(const std::string& value, std::string_view source);

/// Environment variables, the one that wins first. Empty names are not there.
struct Variables {
  std::string_view ours;
  std::string_view pytorchs = {};  ///< PyTorch's, or one that is spelled as PyTorch's are.
  /// The path below the one that a variable names: PyTorch's TORCH_COMPILE_DEBUG_DIR names the
  /// parent of `debug_dir_root`.
  std::string_view below = {};

  constexpr std::array<std::string_view, 2> names() const { return {ours, pytorchs}; }
};

struct Setting {
  std::string_view name;
  Domain domain;
  Variables variables;
  /// One line. It begins with `reserved:` if nothing reads the setting yet.
  std::string_view doc;
  /// For settings that another room keeps: called when the value changes, not when it is read from
  /// the environment. Throws if the value cannot be used, and then has changed nothing.
  Push push = nullptr;

  constexpr bool is_reserved() const { return doc.starts_with("reserved:"); }
  constexpr bool is_text() const {
    return domain.type == Type::text || domain.type == Type::choice;
  }
};

}  // namespace assay::config
