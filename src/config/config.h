/// \file Settings by name, each with its own type:
///
///     if (config::get<"repro_level">() >= 3) ...           // an integer
///     config::set<"cache_size_limit">(16);               // until unset<"cache_size_limit">()
///     const config::PatchScope scope({config::assign<"repro_after">("aot"),
///                                     config::assign<"repro_level">(4)});
///
/// A name that is not in the table (config/settings.h) or a value of another type does not compile.
///
/// - **Where a value comes from.** What a living PatchScope says (the one that began last), else
///   what set() said, else the environment (a variable with our prefix, else PyTorch's; one that is
///   set to nothing means the default), else the default.
/// - **When the environment is read.** Once for each setting, when it is first asked for or set. A
///   later change is not seen until `reload_environment()`. A bad value is a `UserError` each time
///   the setting is read, and does not affect other settings.
/// - **Threads.** Values belong to the process: all threads see a change at once, since compiling
///   and backward may run on threads that the caller did not start. (In stock PyTorch each thread
///   has its own.) Scopes of several threads may overlap in any order; the end of one takes back
///   what it said and nothing else.
/// - **Cost.** Reading is two atomic loads and a branch. Strings are returned by reference and stay
///   valid: distinct values of text settings are kept until the process ends.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "config/settings.h"
#include "config/store.h"

namespace assay::config {

/// A setting's name as an argument of a template.
template <std::size_t length>
struct SettingName {
  // NOLINTNEXTLINE(google-explicit-constructor): so that get<"name"> can be written
  consteval SettingName(const char (&text)[length]) { std::copy_n(text, length, characters); }
  constexpr std::string_view view() const { return {characters, length - 1}; }

  char characters[length] = {};
};

namespace detail {

consteval std::size_t find_index(std::string_view name) {
  std::size_t index = 0;
  while (index < settings.size() && settings[index].name != name) ++index;
  return index;
}

template <SettingName name>
inline constexpr std::size_t index = find_index(name.view());

}  // namespace detail

/// There is a setting of this name.
template <SettingName name>
concept IsSetting = detail::index<name> < settings.size();

/// A value of this C++ type can be given to the setting.
template <typename T, SettingName name>
concept FitsSetting = IsSetting<name> && [] {
  switch (settings[detail::index<name>].domain.type) {
    case Type::boolean:
      return std::same_as<T, bool>;
    case Type::integer:
      return std::integral<T> && !std::same_as<T, bool>;
    case Type::number:
      return std::is_arithmetic_v<T> && !std::same_as<T, bool>;
    case Type::choice:
    case Type::text:
      break;
  }
  return std::convertible_to<T, std::string_view>;
}();

/// The value: bool, std::int64_t, double, or const std::string&.
template <SettingName name>
requires IsSetting<name>
decltype(auto) get() {
  constexpr std::size_t index = detail::index<name>;
  constexpr Type type = settings[index].domain.type;
  const std::uint64_t bits = detail::load(index);
  if constexpr (type == Type::boolean) {
    return bits != 0;
  } else if constexpr (type == Type::integer) {
    return static_cast<std::int64_t>(bits);
  } else if constexpr (type == Type::number) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<const std::string&>(*std::bit_cast<const std::string*>(bits));
  }
}

/// A setting and a value for it. The value is checked when it is set.
template <SettingName name, typename T>
requires FitsSetting<T, name> Assignment assign(const T& value) {
  constexpr Setting setting = settings[detail::index<name>];
  if constexpr (setting.is_text()) {
    return {detail::index<name>, std::string(std::string_view(value))};
  } else if constexpr (setting.domain.type == Type::boolean) {
    return {detail::index<name>, value};
  } else if constexpr (setting.domain.type == Type::number) {
    return {detail::index<name>, static_cast<double>(value)};
  } else {
    return {detail::index<name>, static_cast<std::int64_t>(value)};
  }
}

/// Sets a value until the process ends, or, inside a PatchScope for the setting, until that ends.
/// Throws `UserError` if it is not allowed.
template <SettingName name, typename T>
requires FitsSetting<T, name>
void set(const T& value) { set_value(assign<name>(value)); }

/// Takes back what set() said outside of patches.
template <SettingName name>
requires IsSetting<name>
void unset() { unset_value(detail::index<name>); }

/// What an error message calls the value: the variable it was read from, or `the setting NAME`.
template <SettingName name>
requires IsSetting<name> std::string source() { return source_of(detail::index<name>); }

}  // namespace assay::config
