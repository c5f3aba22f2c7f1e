// SourceLocation: std::source_location as far as events need it. Not the standard one, because
// clang 14 (the clang-tidy of `make lint`) cannot read libstdc++'s.
#pragma once

#include <cstdint>

namespace assay::observe {

/// A line of a source file; as a default argument `SourceLocation::current()` is the caller's.
class SourceLocation {
 public:
  static constexpr SourceLocation current(const char* file_name = __builtin_FILE(),
                                          std::uint32_t line = __builtin_LINE()) noexcept {
    return SourceLocation(file_name, line);
  }

  constexpr SourceLocation() noexcept = default;
  constexpr const char* file_name() const noexcept { return file_name_; }
  constexpr std::uint32_t line() const noexcept { return line_; }

 private:
  constexpr SourceLocation(const char* file_name, std::uint32_t line) noexcept
      : file_name_(file_name), line_(line) {}

  const char* file_name_ = "";
  std::uint32_t line_ = 0;
};

}  // namespace assay::observe
