/// \file "Did you mean ...?": the known names that look like a misspelled one. Called wherever a
/// user types a name: operators, backends, log names, settings, faults.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::base {

/// How many single-character insertions, deletions and substitutions turn one word into the other.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// At most `count` entries of `known` that look like `name`, best first and otherwise in their
/// order; entries that do not resemble it are left out.
std::vector<std::string_view> nearest_names(std::string_view name,
                                            std::span<const std::string_view> known,
                                            std::size_t count = 3);
std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& known,
                                       std::size_t count = 3);

}  // namespace assay::base
