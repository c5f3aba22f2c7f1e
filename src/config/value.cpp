#include "config/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/nearest_names.h"
#include "config/settings.h"

namespace assay::config {

namespace {

std::vector<std::string_view> choices(const Setting& setting) {
  std::vector<std::string_view> words;
  for (std::string_view rest = setting.domain.choices; !rest.empty();) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    words.push_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return words;
}

bool may_be_empty(const Setting& setting) { return setting.domain.default_text.empty(); }

bool is_allowed(const Setting& setting, const Value& value) {
  const Domain& domain = setting.domain;
  switch (domain.type) {
    case Type::boolean:
    case Type::text:
      return true;
    case Type::integer: {
      const auto integer = std::get<std::int64_t>(value);
      return integer >= domain.smallest && integer <= domain.largest;
    }
    case Type::number:
      return std::isfinite(std::get<double>(value)) && std::get<double>(value) >= 0;
    case Type::choice: {
      const auto& word = std::get<std::string>(value);
      if (word.empty()) return may_be_empty(setting);
      const auto words = choices(setting);
      return std::ranges::find(words, word) != words.end();
    }
  }
  return false;
}

template <typename Number>
std::optional<Value> parse_number(const std::string& text) {
  Number number = {};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::optional<Value> parse(const Setting& setting, const std::string& text) {
  switch (setting.domain.type) {
    case Type::boolean:
      if (text == "0" || text == "1") return text == "1";
      return std::nullopt;
    case Type::integer:
      return parse_number<std::int64_t>(text);
    case Type::number:
      return parse_number<double>(text);
    case Type::choice:
    case Type::text:
      return text;
  }
  return std::nullopt;
}

std::string describe(const Value& value) {
  constexpr std::array kTypes = {"the boolean ", "the integer ", "the number "};
  if (const auto* text = std::get_if<std::string>(&value)) return "the string '" + *text + "'";
  if (const auto* flag = std::get_if<bool>(&value))
    return *flag ? "the boolean true" : "the boolean false";
  return kTypes[value.index()] + to_text(value);
}

}  // namespace

UnknownSetting::UnknownSetting(std::string_view name)
    : UserError("there is no setting '" + std::string(name.substr(0, 200)) + "'", [&] {
        std::vector<std::string_view> names;
        names.reserve(settings.size());
        for (const Setting& setting : settings) names.push_back(setting.name);
        std::string hint;
        for (const std::string_view nearest : base::nearest_names(name, names)) {
          hint += (hint.empty() ? "did you mean " : " or ") + std::string(nearest);
        }
        return (hint.empty() ? "" : hint + "? ") + "`assay config` lists them all";
      }()) {}

std::size_t find_index(std::string_view name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  if (found == settings.end()) throw UnknownSetting(name);
  return static_cast<std::size_t>(found - settings.begin());
}

const Setting& find_setting(std::string_view name) { return settings[find_index(name)]; }

const char* to_string(Type type) {
  switch (type) {
    case Type::boolean:
      return "boolean";
    case Type::integer:
      return "integer";
    case Type::number:
      return "number";
    case Type::choice:
      return "choice";
    case Type::text:
      return "text";
  }
  return "";
}

std::string to_text(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::array<char, 32> buffer = {};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::get<double>(value));
  return {buffer.data(), written.ptr};
}

std::string allowed_values(const Setting& setting) {
  const Domain& domain = setting.domain;
  switch (domain.type) {
    case Type::boolean:
      return "0 or 1";
    case Type::integer:
      if (domain.largest == std::numeric_limits<std::int64_t>::max()) {
        return "an integer from " + std::to_string(domain.smallest);
      }
      return "an integer from " + std::to_string(domain.smallest) + " to " +
             std::to_string(domain.largest);
    case Type::number:
      return "a number such as " + to_text(domain.default_number);
    case Type::choice: {
      std::vector<std::string_view> words = choices(setting);
      if (may_be_empty(setting)) words.emplace_back("nothing");
      std::string list;
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
        list += words[i];
      }
      return list;
    }
    case Type::text:
      return "any text";
  }
  return "";
}

Value default_value(const Setting& setting) {
  const Domain& domain = setting.domain;
  switch (domain.type) {
    case Type::boolean:
      return domain.default_integer != 0;
    case Type::integer:
      return domain.default_integer;
    case Type::number:
      return domain.default_number;
    case Type::choice:
    case Type::text:
      break;
  }
  return std::string(domain.default_text);
}

Value parse_value(const Setting& setting, const base::Variable& variable) {
  if (variable.value.empty()) return default_value(setting);
  const std::string_view below = setting.variables.below;
  auto value =
      parse(setting, below.empty() ? variable.value
                                   : (std::filesystem::path(variable.value) / below).string());
  if (value && is_allowed(setting, *value)) return *std::move(value);
  throw UserError(variable.name + " is '" + variable.value + "'",
                  "expected " + allowed_values(setting) + "; it sets " + std::string(setting.name) +
                      ": " + std::string(setting.doc));
}

Value checked_value(const Setting& setting, Value value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value);
      integer != nullptr && setting.domain.type == Type::number) {
    value = static_cast<double>(*integer);
  }
  const std::string problem =
      "the setting " + std::string(setting.name) + " cannot be " + describe(value);
  if (value.index() != default_value(setting).index()) {
    const bool is_boolean = setting.domain.type == Type::boolean;
    throw WrongType(problem, "expected " + (is_boolean ? "a boolean" : allowed_values(setting)));
  }
  if (!is_allowed(setting, value)) throw UserError(problem, "expected " + allowed_values(setting));
  return value;
}

}  // namespace assay::config
