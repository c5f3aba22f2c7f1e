#include "reduce/search.h"

#include <algorithm>
#include <deque>

#include "assay/error.h"
#include "graph/verify.h"
#include "reduce/locate.h"

namespace assay::reduce {

namespace {

bool are_left(const Ends& ends, const graph::Graph& graph) {
  const auto is_left = [&](const Ends::WrongCall& call) {
    return graph.find(call.node) != nullptr;
  };
  const bool has_noticer = ends.noticed.empty() || graph.find(ends.noticed) != nullptr;
  return has_noticer && !ends.wrong.empty() && std::ranges::all_of(ends.wrong, is_left);
}

}  // namespace

void Search::run(std::span<const Pass> passes) {
  taken_.insert(verdict_key(workspace_.print(best_)));
  bool goes_on = true;
  while (goes_on) {
    goes_on = false;
    for (const Pass& pass : passes) goes_on |= run_pass(pass);
  }
}

void Search::ensure_values() {
  if (best_.values != nullptr) return;
  const sandbox::Outcome outcome =
      judge_.run(workspace_.print(best_), sandbox::Trial::Task::record);
  if (events_.on_recording) events_.on_recording(outcome);
  // What cannot be recorded cannot become an input; the passes that need it find nothing to do.
  best_.values = std::make_shared<const Recording>(
      outcome.report.values.empty() ? Recording() : parse_recording(outcome.report.values));
}

void Search::ensure_ends() {
  if (best_.ends) return;
  ensure_values();
  best_.ends = locate(best_, judge_.wanted(), judge_, log_, workspace_);
}

// Of two calls that must both stay, one is where it begins and the other where it shows.
void Search::prepare(const Pass& pass) {
  if (pass.needs != Needs::nothing) ensure_values();
  if (pass.needs == Needs::ends && count_calls(*best_.graph) > 2) ensure_ends();
}

bool Search::is_at_end(const Pass& pass, Position& position) const {
  while (position.round < pass.rounds(best_)) {
    if (position.index < pass.count(best_, position.round)) return false;
    ++position.round;
    position.index = 0;
  }
  return true;
}

std::optional<Search::Attempt> Search::propose(const Pass& pass, Position position) const {
  auto candidate = pass.propose(best_, position.round, position.index, workspace_.store());
  if (!candidate) return std::nullopt;
  const auto problems = graph::find_problems(*candidate->graph);
  if (!problems.empty()) {
    throw InternalError("the pass '" + std::string(pass.name) +
                        "' produced an invalid graph: " + problems[0]);
  }
  Attempt attempt{position, std::move(*candidate)};
  attempt.text = workspace_.print(attempt.candidate);
  attempt.key = verdict_key(attempt.text);
  if (taken_.contains(attempt.key)) return std::nullopt;
  attempt.judgement = log_.find(attempt.key);
  return attempt;
}

bool Search::run_pass(const Pass& pass) {
  prepare(pass);
  bool has_taken = false;
  Position next;
  std::deque<Attempt> window;
  const auto is_wanted = [&](const Attempt& attempt) {
    return attempt.judgement && judge_.is_wanted(attempt.judgement->signature);
  };
  while (true) {
    // What comes after one that will be taken, unless one before it is, depends on it.
    while (judge_.has_idle_worker() && std::ranges::none_of(window, is_wanted) &&
           !is_at_end(pass, next)) {
      auto attempt = propose(pass, next);
      ++next.index;
      if (!attempt) continue;
      if (!attempt->judgement) {
        const auto twin = std::ranges::find(window, attempt->key, &Attempt::key);
        attempt->job = twin != window.end() ? twin->job : judge_.start(attempt->text);
      }
      window.push_back(std::move(*attempt));
    }
    if (window.empty()) break;
    if (!window.front().judgement) {
      const auto [job, judgement] = judge_.wait();
      for (Attempt& attempt : window) {
        if (attempt.job != job) continue;
        attempt.judgement = judgement;
        log_.add(attempt.key, judgement);
      }
      if (events_.on_progress) events_.on_progress(pass, best_);
      continue;
    }
    Attempt decided = std::move(window.front());
    window.pop_front();
    if (!is_wanted(decided)) {
      refuse(decided);
      continue;
    }
    judge_.cancel_all();
    window.clear();
    next = decided.position;
    take(std::move(decided));
    has_taken = true;
    prepare(pass);
    if (events_.on_progress) events_.on_progress(pass, best_);
  }
  return has_taken;
}

void Search::take(Attempt attempt) {
  best_ = std::move(attempt.candidate);
  best_.suspects = attempt.judgement->suspects;
  if (!best_.ends || !are_left(*best_.ends, *best_.graph)) best_.ends.reset();
  taken_.insert(std::move(attempt.key));
  if (events_.on_step) events_.on_step(best_, attempt.text);
}

void Search::refuse(const Attempt& attempt) const {
  const sandbox::Signature& signature = attempt.judgement->signature;
  const bool is_our_bug = signature.verdict == sandbox::Verdict::internal;
  if ((signature.is_failure() || is_our_bug) && events_.on_other_failure) {
    events_.on_other_failure(attempt.candidate, attempt.text, signature);
  }
  if (signature.verdict == sandbox::Verdict::passed && events_.on_passing) {
    events_.on_passing(attempt.candidate, attempt.text);
  }
}

}  // namespace assay::reduce
