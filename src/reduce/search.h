/// \file Runs the passes until none makes the program smaller.
///
/// With several workers candidates are tried as if those before them will be refused. They are
/// decided in order, so the result is that of one worker.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "reduce/candidate.h"
#include "reduce/judge.h"
#include "reduce/pass.h"
#include "reduce/workspace.h"

namespace assay::reduce {

/// What happens during the search, for whoever shows or keeps it.
struct SearchEvents {
  /// After every trial and every step.
  std::function<void(const Pass& pass, const Candidate& best)> on_progress = {};
  /// The values of the best program were recorded, by an eager run that took so long.
  std::function<void(const sandbox::Outcome& recording)> on_recording = {};
  /// A candidate has become the best program.
  std::function<void(const Candidate& best, const std::string& text)> on_step = {};
  /// A candidate fails, but otherwise.
  std::function<void(const Candidate& candidate, const std::string& text,
                     const sandbox::Signature& signature)>
      on_other_failure = {};
  /// A candidate passes.
  std::function<void(const Candidate& candidate, const std::string& text)> on_passing = {};
};

class Search {
 public:
  Search(Candidate start, Judge& judge, VerdictLog& log, Workspace& workspace, SearchEvents events)
      : best_(std::move(start)),
        judge_(judge),
        log_(log),
        workspace_(workspace),
        events_(std::move(events)) {}

  /// To a fixpoint: every pass has gone through all its proposals on the result and none was taken.
  void run(std::span<const Pass> passes);

  const Candidate& best() const { return best_; }
  /// Records the values of all nodes, if they are not known.
  void ensure_values();
  /// Finds out where the failure begins, if nobody has asked.
  void ensure_ends();

 private:
  struct Position {
    std::size_t round = 0;
    std::size_t index = 0;
  };
  struct Attempt {
    Position position = {};
    Candidate candidate = {};
    std::string text = {};
    std::string key = {};
    Judge::Job job = 0;  // 0: the verdict was known
    std::optional<Judgement> judgement = {};
  };

  bool run_pass(const Pass& pass);
  void prepare(const Pass& pass);
  bool is_at_end(const Pass& pass, Position& position) const;
  std::optional<Attempt> propose(const Pass& pass, Position position) const;
  void take(Attempt attempt);
  void refuse(const Attempt& attempt) const;

  Candidate best_;
  // Keys of all best programs. Each pass makes something smaller and nothing larger that an earlier
  // one of this order makes smaller: subgraphs, calls, calls that are not cheap, inputs, results,
  // numbers of elements, then dtypes, constants, contents. So the search ends; that no program
  // becomes the best one twice holds even if a pass does not.
  std::set<std::string, std::less<>> taken_;
  Judge& judge_;
  VerdictLog& log_;
  Workspace& workspace_;
  SearchEvents events_;
};

}  // namespace assay::reduce
