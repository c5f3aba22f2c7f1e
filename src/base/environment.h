/// \file The process's environment. It is read here and nowhere else (`tools/check_rooms.py`
/// checks that): the config room reads Assay's settings, other rooms what belongs to the system
/// (PATH, NO_COLOR, VIRTUAL_ENV).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::base {

/// A variable that is set, perhaps to the empty string.
struct Variable {
  std::string name;
  std::string value;
};

/// The variable's value; nothing if it is not set.
std::optional<std::string> environment_variable(std::string_view name);

/// The first of `names` that is set. One that is set to the empty string counts, so that it can
/// switch off what a later name says.
std::optional<Variable> read_variable(std::span<const std::string_view> names);

/// Every variable of the environment, in its order.
std::vector<Variable> environment();

}  // namespace assay::base
