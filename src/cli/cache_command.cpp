// `assay cache stat|clear|path`: compiled kernels on disk.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "kernels/kernel_cache.h"

namespace assay::cli {

int cache(const CacheCommand& command) {
  const std::string directory = kernels::cache_directory();
  nlohmann::json report = {{"path", directory}};
  std::string text = directory;
  if (command.action == "clear") {
    const std::int64_t removed = kernels::clear_cache();
    report["removed"] = removed;
    text = "removed " + counted(static_cast<std::size_t>(removed), "file") + " from " + directory;
  } else if (command.action == "stat") {
    const kernels::CacheStatistics found = kernels::cache_statistics();
    report["entries"] = found.entries;
    report["bytes"] = found.bytes;
    report["limit_bytes"] = found.limit_bytes;
    text = directory + ": " + counted(static_cast<std::size_t>(found.entries), "file") + ", " +
           human_bytes(static_cast<std::uint64_t>(found.bytes)) + " of at most " +
           human_bytes(static_cast<std::uint64_t>(found.limit_bytes));
  }
  std::printf("%s\n", command.json ? report.dump(2).c_str() : text.c_str());
  return 0;
}

}  // namespace assay::cli
