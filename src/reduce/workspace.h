/// \file The directory of a reduction: the best program so far, its storages, what else was found.
///
/// ```
/// repro.py         the smallest program so far
/// storages/        contents of inputs
/// checkpoints/     every program that was taken, by its number of calls: N.py
/// other/           other failures that were met, one file each
/// passing.py       with keep_passing: the nearest program that does not fail
/// verdicts.jsonl   what every candidate was judged to be
/// reduction.json   what is being reduced
/// ```
#pragma once

#include <filesystem>
#include <string>

#include "reduce/candidate.h"
#include "repro/content_store.h"
#include "repro/repro_file.h"
#include "sandbox/signature.h"

namespace assay::reduce {

class Workspace {
 public:
  /// Makes the directory. `identity` says what is being reduced, and how; if another reduction was
  /// done in the directory, or `restart`, what it left is removed. Throws `UserError` if that would
  /// remove what no reduction made, or the subject itself, or if another process is at work there.
  Workspace(const std::filesystem::path& directory, const repro::ReproFile& subject,
            const std::string& identity, bool restart);

  const std::filesystem::path& directory() const { return directory_; }
  repro::ContentStore& store() { return store_; }
  /// The directory had the traces of the same reduction.
  bool is_resumed() const { return is_resumed_; }

  /// The subject's graph and inputs. All contents are put into this directory's store, made-up ones
  /// too, so that they stay the same whatever else is removed.
  /// `notes` gets what a user should know about them.
  Candidate load(const repro::ReproFile& subject, std::uint64_t seed,
                 std::vector<std::string>* notes = nullptr);

  /// The text of a candidate, for trials: without metadata, which a change may have made untrue.
  std::string print(const Candidate& program) const;
  /// For people, with metadata (as far as the program's recording goes) and the user's lines.
  /// `depth` is how far below the directory the file will be.
  std::string print_for_people(const Candidate& program, const std::string& comment,
                               int depth = 0) const;

  void save(const std::filesystem::path& name, const std::string& text) const;

  /// At the end: removes the contents that only candidates had, and what killed trials left.
  void tidy() const;

 private:
  void clear(const repro::ReproFile& subject) const;
  repro::ReproFile make_file(const Candidate& program, const std::string& save_directory) const;

  /// Held while it lives; the system takes it back from a process that is killed.
  class Lock {
   public:
    explicit Lock(const std::filesystem::path& directory);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int file_;
  };

  std::filesystem::path directory_;
  Lock lock_;
  const repro::ReproFile& subject_;
  repro::ContentStore store_;
  bool is_resumed_ = false;
};

}  // namespace assay::reduce
