/// \file PyTorch's content store: a directory with one file per storage, named by its hash.
#pragma once

#include <c10/core/Storage.h>

#include <filesystem>
#include <string>

namespace assay::repro {

class ContentStore {
 public:
  /// The store is `directory/storages/`; it need not exist yet.
  explicit ContentStore(std::filesystem::path directory);

  bool contains(const std::string& hash) const;

  /// Reads a storage that stock PyTorch or `write` saved. Throws `UserError` if it is missing, not
  /// in PyTorch's format, or not `bytes` long.
  c10::Storage read(const std::string& hash, std::size_t bytes) const;

  /// Saves a storage, once, under the SHA-1 of its contents, as stock PyTorch does with
  /// `stable_hash=True`. Returns the hash.
  std::string write(const c10::Storage& storage);

  /// Saves a storage under a name that was chosen for it, unless there is one of that name. Hashing
  /// costs more than writing; whoever can name contents by where they come from need not do it.
  void write_as(const std::string& name, const c10::Storage& storage);

  /// Takes over a storage of another store, as a hard link where that is possible.
  void adopt(const ContentStore& other, const std::string& hash);

  std::filesystem::path path(const std::string& hash) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace assay::repro
