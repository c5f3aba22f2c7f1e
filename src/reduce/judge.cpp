#include "reduce/judge.h"

#include <chrono>
#include <thread>

#include "assay/error.h"

namespace assay::reduce {

namespace {

using sandbox::Outcome;
using sandbox::Signature;
using sandbox::Verdict;

// A machine that is short of memory kills more than one; one that kills this many times in a row
// will not stop.
constexpr int kMaxKills = 12;

}  // namespace

void Judge::note_killed(Running& running, const Signature& signature) {
  ++killed_;
  if (++running.kills < kMaxKills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1 << std::min(running.kills, 7)));
    return;
  }
  throw AllKilled("a trial was killed externally " + std::to_string(kMaxKills) + " times" +
                  (signature.type.empty() ? "" : " (" + signature.type + ")") +
                  (signature.message.empty() ? "" : ": " + signature.message));
}

Judge::Job Judge::start(const std::string& text) {
  const int worker = pool_.idle_worker();
  internal_check(worker >= 0, "a job needs an idle worker");
  Running running{next_job_++, base_, tries_};
  running.trial.file = text;
  pool_.start(worker, running.trial);
  const Job job = running.job;
  running_[worker] = std::move(running);
  return job;
}

// The next one that ends, other than that aside.
std::pair<int, Outcome> Judge::wait_for_trial() {
  while (true) {
    auto [worker, outcome] = pool_.wait();
    ++trials_;
    const bool is_aside = background_ && background_->is_under_way && worker == background_worker();
    if (!is_aside) return {worker, std::move(outcome)};
    settle_background(std::move(outcome));
  }
}

void Judge::run_background() {
  pool_.start(background_worker(), background_->running.trial);
  background_->is_under_way = true;
}

void Judge::settle_background(Outcome outcome) {
  background_->is_under_way = false;
  const Signature signature = sandbox::classify(outcome);
  background_->outcome = std::move(outcome);
  if (signature.verdict != Verdict::killed) return;
  note_killed(background_->running, signature);
  run_background();
}

void Judge::start_background(const std::string& text) {
  internal_check(running_.empty() && !background_, "a trial aside is started before the jobs");
  background_ = BackgroundTrial{{0, base_, 1}};
  background_->running.trial.file = text;
  if (pool_.workers() > 1) run_background();
}

Outcome Judge::finish_background() {
  internal_check(running_.empty() && background_,
                 "a trial aside is waited for when no job is left");
  if (pool_.workers() == 1) run_background();
  while (background_->is_under_way) {
    ++trials_;
    settle_background(pool_.wait().second);
  }
  return std::exchange(background_, std::nullopt)->outcome;
}

std::pair<Judge::Job, Judgement> Judge::wait() {
  while (true) {
    auto [worker, outcome] = wait_for_trial();
    Running& running = running_.at(worker);
    const Signature signature = sandbox::classify(outcome);
    if (signature.verdict == Verdict::killed) {
      note_killed(running, signature);
      pool_.start(worker, running.trial);
      continue;
    }
    if (!is_wanted(signature) && --running.tries_left > 0) {
      pool_.start(worker, running.trial);
      continue;
    }
    const Job job = running.job;
    running_.erase(worker);
    return {job, {signature, outcome.report.suspects, {}}};
  }
}

void Judge::cancel_all() {
  for (const auto& [worker, running] : running_) pool_.cancel(worker);
  running_.clear();
}

int Judge::count_wanted(const std::string& text, int runs) {
  const int tries = std::exchange(tries_, 1);
  int started = 0;
  int wanted = 0;
  for (int done = 0; done < runs; ++done) {
    while (started < runs && has_idle_worker()) {
      start(text);
      ++started;
    }
    wanted += is_wanted(wait().second.signature) ? 1 : 0;
  }
  tries_ = tries;
  return wanted;
}

Outcome Judge::run(const std::string& text, sandbox::Trial::Task task) {
  sandbox::Trial trial = base_;
  trial.file = text;
  trial.task = task;
  return run(std::move(trial));
}

Judgement Judge::locate(const std::string& text, bool backward) {
  sandbox::Trial trial = base_;
  trial.file = text;
  trial.task = sandbox::Trial::Task::locate;
  trial.accuracy = true;
  trial.backward = base_.backward && backward;
  trial.until.reset();
  const Outcome outcome = run(std::move(trial));
  return {sandbox::classify(outcome), outcome.report.suspects, outcome.report.differences};
}

Outcome Judge::run(sandbox::Trial trial) {
  internal_check(running_.empty(), "a single trial is run while no job is under way");
  Running running{0, std::move(trial), 1};
  while (true) {
    pool_.start(0, running.trial);
    Outcome outcome = wait_for_trial().second;
    const Signature signature = sandbox::classify(outcome);
    if (signature.verdict != Verdict::killed) return outcome;
    note_killed(running, signature);
  }
}

}  // namespace assay::reduce
