#include "guards/cache_limits.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "config/config.h"

namespace assay::guards {

namespace {

std::optional<std::string> reached(std::size_t count, std::string_view name, std::size_t limit) {
  if (count < limit) return std::nullopt;
  return std::string(name) + " (" + std::to_string(limit) + ")";
}

}  // namespace

std::optional<std::string> reached_limit(const KeptGraphs& kept, std::optional<std::size_t> own) {
  if (own) return reached(kept.all, "recompile_limit", *own);
  const std::int64_t limit = config::get<"cache_size_limit">();
  if (!kept.next_is_for_other_sizes) {
    return reached(kept.all - kept.for_other_sizes, "cache_size_limit",
                   static_cast<std::size_t>(limit));
  }
  const std::int64_t accumulated = config::get<"accumulated_cache_size_limit">();
  return reached(kept.all, "accumulated_cache_size_limit",
                 static_cast<std::size_t>(std::max(limit, accumulated)));
}

}  // namespace assay::guards
