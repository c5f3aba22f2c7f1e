#include "base/environment.h"

#include <unistd.h>

#include <cstdlib>

namespace assay::base {

std::optional<std::string> environment_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<Variable> read_variable(std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (auto value = environment_variable(name)) return Variable{std::string(name), *value};
  }
  return std::nullopt;
}

std::vector<Variable> environment() {
  std::vector<Variable> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.push_back(
        {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  return variables;
}

}  // namespace assay::base
