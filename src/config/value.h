/// \file Values of settings while their type is not known at compile time: read from text, checked
/// against the table, printed. Used by the store, the command and the Python binding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "assay/error.h"
#include "base/environment.h"
#include "config/setting.h"

namespace assay::config {

/// A string is the value of a choice or a text.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// No setting has this name; the message names the nearest.
class UnknownSetting : public UserError {
 public:
  explicit UnknownSetting(std::string_view name);
};

/// A value of another type than the setting's.
class WrongType : public UserError {
 public:
  using UserError::UserError;
};

/// The place in the table of a name that is known at run time only. Throws `UnknownSetting`. Ask
/// this rather than subtract the addresses of rows: a library with hidden symbols, such as the
/// Python extension, has a copy of the table of its own.
std::size_t find_index(std::string_view name);
/// Its row.
const Setting& find_setting(std::string_view name);

/// `boolean`, `integer`, `number`, `choice` or `text`.
const char* to_string(Type type);
/// `2`, `1e-3`, `dynamo`; booleans are 0 and 1, as in the environment.
std::string to_text(const Value& value);
/// What values there are: `0 or 1`, `an integer from 1 to 4`, `dynamo, aot or nothing`.
std::string allowed_values(const Setting& setting);

Value default_value(const Setting& setting);

/// The value that a variable of the environment gives the setting; the default if it is empty.
/// Throws `UserError` that names the variable, what it says and what is allowed.
Value parse_value(const Setting& setting, const base::Variable& variable);

/// The value as one of the setting's own type: an integer is also a number. Throws `WrongType`, or
/// `UserError` for one that is not allowed.
Value checked_value(const Setting& setting, Value value);

}  // namespace assay::config
