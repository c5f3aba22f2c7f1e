/// \file Judges candidates by trials: several at once, killed ones again, flaky ones several times.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reduce/verdict_log.h"
#include "sandbox/server.h"
#include "sandbox/signature.h"

namespace assay::reduce {

/// Every trial is killed by somebody else: nothing can be found out.
class AllKilled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Judge {
 public:
  using Job = std::int64_t;

  /// `base` is what all trials have in common: everything but the file.
  Judge(sandbox::ServerPool& pool, sandbox::Trial base) : pool_(pool), base_(std::move(base)) {}

  sandbox::Trial& base() { return base_; }
  /// The failure that is looked for.
  void look_for(const sandbox::Signature& wanted) { wanted_ = wanted; }
  const sandbox::Signature& wanted() const { return wanted_; }
  /// A candidate that does not fail at first is tried this many times.
  void set_tries(int tries) { tries_ = tries; }
  int tries() const { return tries_; }

  bool is_wanted(const sandbox::Signature& found) const { return sandbox::is_same(wanted_, found); }

  bool has_idle_worker() const { return pool_.idle_worker() >= 0; }
  Job start(const std::string& text);
  /// Waits for the next job that is decided.
  std::pair<Job, Judgement> wait();
  void cancel_all();

  /// One trial of the text, repeated only if it is killed.
  sandbox::Outcome run(const std::string& text,
                       sandbox::Trial::Task task = sandbox::Trial::Task::test);

  /// Which results of the text differ from eager's? One trial, of backward too if asked for.
  Judgement locate(const std::string& text, bool backward);

  /// Starts a trial that goes on beside the jobs, on a worker of its own; with one worker it runs
  /// when it is asked for. There is one at a time.
  void start_background(const std::string& text);
  /// Waits for it.
  sandbox::Outcome finish_background();

  /// How many of `runs` trials of the text fail as is looked for; several at a time.
  int count_wanted(const std::string& text, int runs);

  std::int64_t trials() const { return trials_; }
  std::int64_t killed() const { return killed_; }

 private:
  struct Running {
    Job job = 0;
    sandbox::Trial trial = {};
    int tries_left = 0;
    int kills = 0;
  };
  struct BackgroundTrial {
    Running running = {};
    bool is_under_way = false;
    sandbox::Outcome outcome = {};
  };
  sandbox::Outcome run(sandbox::Trial trial);
  void note_killed(Running& running, const sandbox::Signature& signature);
  int background_worker() const { return pool_.workers() - 1; }
  std::pair<int, sandbox::Outcome> wait_for_trial();
  void run_background();
  void settle_background(sandbox::Outcome outcome);

  sandbox::ServerPool& pool_;
  sandbox::Trial base_;
  sandbox::Signature wanted_ = {};
  int tries_ = 1;
  Job next_job_ = 1;
  std::map<int, Running> running_;  // by worker
  std::optional<BackgroundTrial> background_;
  std::int64_t trials_ = 0;
  std::int64_t killed_ = 0;
};

}  // namespace assay::reduce
