/// \file What a reduction has found so far, on disk: the best program, the steps to it, other
/// failures, the nearest program that passes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reduce/candidate.h"
#include "reduce/reduce.h"
#include "reduce/workspace.h"

namespace assay::reduce {

class Findings {
 public:
  /// `rerun` is how to see the failure, for a comment in the files; may be empty.
  Findings(Workspace& workspace, std::string rerun)
      : workspace_(workspace), rerun_(std::move(rerun)) {}

  /// Another way to see the failure.
  void set_rerun(std::string rerun) { rerun_ = std::move(rerun); }

  /// `best` is the best program so far, and fails like this.
  void save_step(const Candidate& best, const sandbox::Signature& signature);
  /// The best program at the end; `comment` is added to what is said about it.
  void save_result(const Candidate& best, const sandbox::Signature& signature,
                   const std::string& comment);
  /// Once per signature.
  void save_other(const Candidate& program, const sandbox::Signature& signature);
  const std::vector<OtherFailure>& others() const { return others_; }

  /// A candidate that passes. Kept is the one that has most in common with the best program.
  void note_passing(const Candidate& candidate, const std::string& text);
  /// Its file, if there was one.
  std::optional<std::filesystem::path> save_passing() const;

 private:
  std::string comment_on(const sandbox::Signature& signature) const;

  Workspace& workspace_;
  std::string rerun_;
  std::vector<OtherFailure> others_;
  std::string best_text_;
  std::optional<Candidate> passing_;
  std::string passing_text_;
};

}  // namespace assay::reduce
