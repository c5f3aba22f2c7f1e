/// \file The values of the settings of this process, by their place in the table. What the typed
/// accessors of config/config.h and the Python binding stand on; others use config/config.h.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "config/value.h"

namespace assay::config {

/// Where a value comes from.
struct Origin {
  enum class Kind { default_value, environment, set };
  Kind kind = Kind::default_value;
  std::string variable = {};  ///< Of the environment.
};
/// `default`, `environment variable TORCH_LOGS`, `set`
std::string to_string(const Origin& origin);

/// A setting, by its place in the table, and a value for it.
struct Assignment {
  std::size_t index;
  Value value;
};

namespace detail {

/// What get() reads: the value as one word (a boolean, an integer, the bits of a number, or a
/// pointer to a string that is never freed), once it is known.
struct Word {
  std::atomic<bool> is_known = false;
  std::atomic<std::uint64_t> bits = 0;
};
extern std::array<Word, settings.size()> words;

/// Finds the value if it is not known yet. Throws `UserError` if the environment has a bad one.
std::uint64_t resolve(std::size_t index);

inline std::uint64_t load(std::size_t index) {
  const Word& word = words[index];
  if (word.is_known.load(std::memory_order_acquire)) {
    return word.bits.load(std::memory_order_acquire);
  }
  return resolve(index);
}

}  // namespace detail

/// The value, and where it comes from. Throws as detail::resolve does.
std::pair<Value, Origin> current_value(std::size_t index);

/// What an error message calls the value: the variable it was read from, or `the setting NAME`.
std::string source_of(std::size_t index);

/// Sets a value until the process ends, or, inside a PatchScope for the setting, until that ends.
void set_value(Assignment assignment);

/// Takes back what set_value() said outside of patches: the environment's value or the default
/// holds again, once no PatchScope for the setting lives.
void unset_value(std::size_t index);

/// Sets settings while it lives, for all threads. See config/config.h.
class PatchScope {
 public:
  /// Throws if a value is not allowed; then none of them has been set.
  explicit PatchScope(std::vector<Assignment> assignments);
  ~PatchScope();
  PatchScope(const PatchScope&) = delete;
  PatchScope& operator=(const PatchScope&) = delete;

 private:
  std::uint64_t id_ = 0;
  std::vector<std::size_t> indexes_;
};

/// Forgets what was read from the environment: each setting reads it again when it is next asked
/// for. For tests, and for programs that change their own environment. Logs and the trace stay as
/// they are until `observe::configure(observe_settings())`.
void reload_environment();

}  // namespace assay::config
