// Environment variables for the length of a test. The settings read them anew when one is set and
// when it is put back.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <list>
#include <optional>
#include <string>

#include "base/environment.h"
#include "config/config.h"

namespace assay::config {

class Variable {
 public:
  /// Without a value the variable is not set.
  Variable(std::string_view name, const std::optional<std::string>& value)
      : name_(name), before_(base::environment_variable(name)) {
    put(value);
  }
  ~Variable() { put(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void put(const std::optional<std::string>& value) const {
    if (value) {
      setenv(name_.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
    reload_environment();
  }

  std::string name_;
  std::optional<std::string> before_;
};

/// An environment without a variable of any setting.
class NoVariables {
 public:
  NoVariables() {
    for (const Setting& setting : settings) {
      for (const std::string_view name : setting.variables.names()) {
        if (!name.empty()) removed_.emplace_back(name, std::nullopt);
      }
    }
  }

 private:
  std::list<Variable> removed_;
};

/// The message of the `UserError` that `action` throws.
template <typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace assay::config
