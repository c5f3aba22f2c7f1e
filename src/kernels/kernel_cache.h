/// \file Compiled kernels, cached on disk by content: the same text, flags, compiler and CPU are
/// compiled once per machine. Entries are written beside and renamed, so any number of processes
/// may share the directory; each carries a checksum, and one that is damaged is compiled again. The
/// pipeline calls `compile_and_load`; `assay cache` the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/target.h"

namespace assay::kernels {

/// Shared objects that stay loaded while this lives.
class LoadedLibrary {
 public:
  LoadedLibrary() = default;
  ~LoadedLibrary();
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  /// The address of an exported function. Throws InternalError if there is none.
  void* symbol(const std::string& name) const;
  /// How many of its translation units the compiler had to run for.
  int compiled_units() const { return compiled_units_; }

 private:
  friend std::shared_ptr<const LoadedLibrary> compile_and_load(const std::string& code,
                                                               const Target& target);
  std::vector<void*> handles_;
  int compiled_units_ = 0;
};

/// Loads the library of `code` (emit.h), compiling what is not cached. Large programs are compiled
/// as several translation units at the same time. Throws `KernelCompileError`, and `InternalError`
/// if there is no toolchain() or a library needs a function that Assay does not have.
std::shared_ptr<const LoadedLibrary> compile_and_load(const std::string& code,
                                                      const Target& target = native_target());

/// The cache's directory: the setting `cache_dir`, or `assay` in the user's cache directory. It
/// need not exist.
std::string cache_directory();

struct CacheStatistics {
  std::int64_t entries = 0;
  std::int64_t bytes = 0;
  std::int64_t limit_bytes =
      0;  ///< Above this, entries that were not used for longest are removed.
};
CacheStatistics cache_statistics();

/// A file beside the entries whose existence says that `fact` holds on this machine.
std::string cache_note(const std::string& fact);

/// Removes every entry, and returns how many there were.
std::int64_t clear_cache();

}  // namespace assay::kernels
