/// \file How many graphs are kept for one place in a program. Graphs for other sizes of tensors
/// have a limit of their own, unless the user has set one for the function. Used by frontend and
/// capture.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace assay::guards {

/// What is kept for a place already, and whether one more would be for other sizes only.
struct KeptGraphs {
  std::size_t all = 0;
  std::size_t for_other_sizes = 0;
  bool next_is_for_other_sizes = false;
};

/// The limit that forbids one more graph, for a message: "cache_size_limit (8)". `own`: the user's
/// for this function.
std::optional<std::string> reached_limit(const KeptGraphs& kept, std::optional<std::size_t> own);

}  // namespace assay::guards
