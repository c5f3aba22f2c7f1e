#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "aten/torch_functions.h"

namespace assay::aten {

struct ParameterList {
  struct Parameter {
    std::string name;
    std::optional<Value> default_value;
  };

  std::string text;
  std::vector<Parameter> parameters;  // in order; then `*rest` and `**mapping`, if any
  std::size_t positional = 0;         // how many may be given by position
  std::size_t named = 0;              // how many are neither `*rest` nor `**mapping`
  std::optional<std::size_t> rest;
  std::optional<std::size_t> mapping;
};

namespace {

constexpr std::size_t kMissing = static_cast<std::size_t>(-1);

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The defaults our tables use: None, True, False, numbers, quoted text without escapes, ().
Value default_from_text(std::string_view text) {
  if (text == "None") return {};
  if (text == "True" || text == "False") return c10::IValue(text == "True");
  if (text == "()") return Value::sequence(Value::Kind::tuple, {});
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') {
    return c10::IValue(std::string(text.substr(1, text.size() - 2)));
  }
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (auto read = std::from_chars(text.data(), end, integer);
      read.ec == std::errc() && read.ptr == end) {
    return c10::IValue(integer);
  }
  double number = 0;
  if (auto read = std::from_chars(text.data(), end, number);
      read.ec == std::errc() && read.ptr == end) {
    return c10::IValue(number);
  }
  throw InternalError("a parameter list has a default that cannot be read: " + std::string(text));
}

// No default contains a comma, so the text splits at every one.
ParameterList parse_parameters(std::string_view text) {
  ParameterList list;
  list.text = text;
  std::optional<std::string> rest;
  std::optional<std::string> mapping;
  bool keyword_only = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = trimmed(text.substr(begin, comma - begin));
    begin = comma + 1;
    if (part.starts_with("**")) {
      mapping = part.substr(2);
    } else if (part.starts_with('*')) {
      keyword_only = true;
      if (part.size() > 1) rest = part.substr(1);
    } else {
      const auto equals = std::min(part.find('='), part.size());
      ParameterList::Parameter parameter{std::string(part.substr(0, equals)), std::nullopt};
      if (equals < part.size())
        parameter.default_value = default_from_text(part.substr(equals + 1));
      list.parameters.push_back(std::move(parameter));
      if (!keyword_only) ++list.positional;
    }
  }
  list.named = list.parameters.size();
  if (rest) {
    list.rest = list.parameters.size();
    list.parameters.push_back({*rest, Value::sequence(Value::Kind::tuple, {})});
  }
  if (mapping) {
    list.mapping = list.parameters.size();
    list.parameters.push_back({*mapping, Value::sequence(Value::Kind::dict, {})});
  }
  return list;
}

const ParameterList& parameter_list(std::string_view text) {
  static std::shared_mutex mutex;
  // Keyed by the text that the list itself holds; lists are never removed.
  static std::unordered_map<std::string_view, std::unique_ptr<ParameterList>> lists;
  {
    const std::shared_lock lock(mutex);
    if (auto found = lists.find(text); found != lists.end()) return *found->second;
  }
  auto parsed = std::make_unique<ParameterList>(parse_parameters(text));
  const std::unique_lock lock(mutex);
  const std::string_view key = parsed->text;
  return *lists.try_emplace(key, std::move(parsed)).first->second;
}

std::string short_name(std::string_view function) {
  const auto dot = function.rfind('.');
  return std::string(dot == std::string_view::npos ? function : function.substr(dot + 1)) + "()";
}

std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

UserError too_many(std::string_view function, const ParameterList& list, std::size_t given) {
  const auto required = static_cast<std::size_t>(
      std::ranges::count_if(list.parameters.begin(),
                            list.parameters.begin() + static_cast<std::ptrdiff_t>(list.positional),
                            [](const auto& parameter) { return !parameter.default_value; }));
  std::string takes = counted(list.positional, "positional argument");
  if (required != list.positional) takes = "from " + std::to_string(required) + " to " + takes;
  return UserError(short_name(function) + " takes " + takes + " but " + std::to_string(given) +
                   (given == 1 ? " was given" : " were given"));
}

UserError missing(std::string_view function, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? (i > 1 ? ", and " : " and ") : ", ";
    text += "'" + names[i] + "'";
  }
  return UserError(short_name(function) + " missing " + counted(names.size(), "required argument") +
                   ": " + text);
}

std::size_t find_parameter(const ParameterList& list, std::string_view name, std::size_t end) {
  for (std::size_t i = 0; i < end; ++i) {
    if (list.parameters[i].name == name) return i;
  }
  return kMissing;
}

}  // namespace

BoundArguments::BoundArguments(std::string_view function, std::string_view parameters,
                               Arguments arguments)
    : function_(function), parameters_(&parameter_list(parameters)) {
  const ParameterList& list = *parameters_;
  values_.resize(list.parameters.size());
  std::vector<bool> is_set(list.parameters.size(), false);
  const auto set = [&](std::size_t index, Value value) {
    values_[index] = std::move(value);
    is_set[index] = true;
  };

  auto& positional = arguments.positional;
  const std::size_t by_position = std::min(positional.size(), list.positional);
  for (std::size_t i = 0; i < by_position; ++i) set(i, std::move(positional[i]));
  if (list.rest) {
    positional.erase(positional.begin(),
                     positional.begin() + static_cast<std::ptrdiff_t>(by_position));
    set(*list.rest, Value::sequence(Value::Kind::tuple, std::move(positional)));
  } else if (positional.size() > list.positional) {
    throw too_many(function, list, positional.size());
  }

  Value extra = Value::sequence(Value::Kind::dict, {});
  for (Keyword& keyword : arguments.keywords) {
    const std::size_t index = find_parameter(list, keyword.name, list.named);
    if (index != kMissing) {
      if (is_set[index]) {
        throw UserError(short_name(function) + " got multiple values for argument '" +
                        keyword.name + "'");
      }
      set(index, std::move(keyword.value));
    } else if (list.mapping) {
      extra.keys.push_back(keyword.name);
      extra.items.push_back(std::move(keyword.value));
    } else {
      throw UserError(short_name(function) + " got an unexpected keyword argument '" +
                      keyword.name + "'");
    }
  }
  if (list.mapping) set(*list.mapping, std::move(extra));

  std::vector<std::string> absent;
  for (std::size_t i = 0; i < list.named; ++i) {
    if (is_set[i]) continue;
    const ParameterList::Parameter& parameter = list.parameters[i];
    if (parameter.default_value) {
      values_[i] = *parameter.default_value;
    } else {
      absent.push_back(parameter.name);
    }
  }
  if (!absent.empty()) throw missing(function, absent);
}

const Value& BoundArguments::operator[](std::string_view parameter) const {
  const std::size_t index = find_parameter(*parameters_, parameter, values_.size());
  if (index == kMissing) {
    throw InternalError(std::string(function_) + " has no parameter " + std::string(parameter));
  }
  return values_[index];
}

UserError BoundArguments::wrong_type(std::string_view parameter, const char* expected) const {
  return UserError(short_name(function_) + ": argument '" + std::string(parameter) + "' must be " +
                   expected + ", not " + type_name((*this)[parameter]));
}

bool BoundArguments::truth(std::string_view parameter) const {
  const Value& value = (*this)[parameter];
  if (value.is_bool()) return value.leaf.toBool();
  if (value.is_int()) return value.leaf.toInt() != 0;
  if (value.is_none()) return false;
  throw wrong_type(parameter, "bool");
}

std::int64_t BoundArguments::integer(std::string_view parameter) const {
  const Value& value = (*this)[parameter];
  if (value.is_int()) return value.leaf.toInt();
  if (value.is_bool()) return value.leaf.toBool() ? 1 : 0;
  throw wrong_type(parameter, "int");
}

double BoundArguments::number(std::string_view parameter) const {
  const Value& value = (*this)[parameter];
  if (value.is_float()) return value.leaf.toDouble();
  if (value.is_int()) return static_cast<double>(value.leaf.toInt());
  if (value.is_bool()) return value.leaf.toBool() ? 1.0 : 0.0;
  throw wrong_type(parameter, "float");
}

std::string BoundArguments::text(std::string_view parameter) const {
  const Value& value = (*this)[parameter];
  if (value.is_string()) return value.leaf.toStringRef();
  throw wrong_type(parameter, "str");
}

at::Tensor BoundArguments::tensor(std::string_view parameter) const {
  const Value& value = (*this)[parameter];
  if (value.is_tensor()) return value.leaf.toTensor();
  throw wrong_type(parameter, "Tensor");
}

}  // namespace assay::aten
