#include "reduce/reduce.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "graph/print.h"
#include "reduce/findings.h"
#include "reduce/inputs.h"
#include "reduce/others.h"
#include "reduce/search.h"

namespace assay::reduce {

namespace {

using Clock = std::chrono::steady_clock;
using sandbox::Limits;
using sandbox::Outcome;
using sandbox::Signature;
using sandbox::Verdict;

// A program that passes is run this often before it is believed, as long as that takes no longer
// than this.
constexpr int kTriesBeforePassing = 12;
constexpr double kSecondsBeforePassing = 10;
// A trial that takes longer than this is not repeated without need.
constexpr double kSlowTrial = 0.1;
// Chance that a candidate with a flaky fault is taken for one that passes.
constexpr double kMissedChance = 0.01;

std::string identity_of(const repro::ReproFile& file, const Options& options) {
  nlohmann::json identity = sandbox::to_json(options.trial);
  identity["file"] = verdict_key(file.source->text);
  identity["accuracy"] = static_cast<int>(options.accuracy);
  identity["passes"] = options.passes;
  identity.erase("save_dir");
  return identity.dump(2) + "\n";
}

class Reduction {
 public:
  Reduction(const repro::ReproFile& file, const Options& options, sandbox::ServerPool& pool,
            const std::function<void(const Progress&)>& on_progress)
      : options_(options),
        on_progress_(on_progress),
        workspace_(options.output, file, identity_of(file, options), options.restart),
        log_(workspace_.directory() / "verdicts.jsonl"),
        findings_(workspace_, options.rerun),
        original_(workspace_.load(file, options.trial.seed, &result_.notes)),
        judge_(pool, options.trial) {
    judge_.base().save_directory = workspace_.directory().string();
    result_.is_resumed = workspace_.is_resumed();
    result_.known_verdicts = log_.size();
    result_.calls_before = count_calls(*original_.graph);
    result_.elements_before = count_elements(original_);
  }

  Reduced run() {
    try {
      record_original();
      if (find_failure()) search();
    } catch (const AllKilled& killed) {
      result_.status = Reduced::Status::killed;
      result_.message = killed.what();
      std::filesystem::remove(workspace_.directory() / "repro.py");
    }
    result_.trials = judge_.trials();
    result_.killed_trials = judge_.killed();
    result_.seconds = seconds();
    return std::move(result_);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void record_original() {
    const Outcome recording = judge_.run(workspace_.print(original_), sandbox::Trial::Task::record);
    eager_seconds_ = recording.seconds;
    if (!recording.report.values.empty()) {
      original_.values =
          std::make_shared<const Recording>(parse_recording(recording.report.values));
      for (const auto& [name, value] : *original_.values) {
        value_bytes_ += static_cast<double>(value.storage.bytes.constant().value_or(0));
      }
    }
    Limits& limits = judge_.base().limits;
    limits.wall_seconds += options_.limit_factor * eager_seconds_;
    limits.cpu_seconds += options_.limit_factor * eager_seconds_;
    limits.memory_bytes += static_cast<std::uint64_t>(options_.limit_factor * value_bytes_);
    limits_ = limits;
  }

  // Does the program fail at all, how, and always?
  bool find_failure() {
    const std::string text = workspace_.print(original_);
    judge_.base().accuracy = options_.accuracy != Options::Accuracy::never;
    const bool is_only_accuracy = options_.accuracy == Options::Accuracy::always;
    Outcome outcome;
    Signature found;
    int tries = 0;
    do {
      outcome = judge_.run(text);
      found = sandbox::classify(outcome);
      ++tries;
      show("first run", original_);
    } while (found.verdict == Verdict::passed && tries < kTriesBeforePassing &&
             seconds() < kSecondsBeforePassing);
    result_.signature = found;
    if (found.verdict == Verdict::invalid) refuse_to_check(found);
    if (found.verdict == Verdict::invalid) return stop(Reduced::Status::eager_fails);
    if (found.verdict == Verdict::passed) return stop(Reduced::Status::passes);
    judge_.base().accuracy =
        is_only_accuracy || found.verdict == Verdict::accuracy || found.stage == "compare";
    // What gets past the stage that fails need not go further.
    if (!judge_.base().accuracy) judge_.base().until = found.stage;
    // A kernel that does not compile leaves nothing to share, and trials of the same one would wait
    // for each other.
    judge_.base().private_cache = found.stage == "compile";
    original_.suspects = outcome.report.suspects;
    judge_.look_for(found);
    // Again, unless that takes long (the end will show it too): a fault that comes and goes must be
    // asked for more often.
    const int runs = outcome.seconds > kSlowTrial ? 0 : 3;
    judge_.base().limits = tight_limits();
    const int failures = 1 + judge_.count_wanted(text, runs);
    if (failures < tries + runs) expect_flaky(static_cast<double>(failures) / (tries + runs));
    return true;
  }

  // A command that cannot judge the file itself will not judge a part of it either.
  void refuse_to_check(const Signature& found) const {
    if (options_.trial.command.empty()) return;
    throw UserError("the check '" + options_.trial.command + "' does not judge the file: " +
                        found.type + (found.message.empty() ? "" : ": " + found.message),
                    "0 says that a file is good, 125 that it cannot be judged, any other exit code "
                    "that it fails");
  }

  bool stop(Reduced::Status status) {
    result_.status = status;
    result_.message = sandbox::describe(result_.signature);
    return false;
  }

  void expect_flaky(double rate) {
    const double tries = std::log(kMissedChance) / std::log(1 - std::min(rate, 0.95));
    judge_.set_tries(std::clamp(static_cast<int>(std::ceil(tries)), 2, 40));
  }

  bool uses_up_limits() const {
    const Verdict verdict = result_.signature.verdict;
    return verdict == Verdict::timeout || verdict == Verdict::memory;
  }

  // A trial that hangs or eats memory costs all of its limit, so the limit is set by what a run
  // that does neither needs.
  Limits tight_limits() const {
    Limits limits = limits_;
    if (result_.signature.verdict == Verdict::timeout) {
      const double usual = slack_ * (0.2 + 10 * eager_seconds_);
      limits.wall_seconds = std::min(limits.wall_seconds, usual);
      limits.cpu_seconds = std::min(limits.cpu_seconds, usual);
    }
    if (result_.signature.verdict == Verdict::memory) {
      const double usual = slack_ * (std::pow(2, 28) + 4 * value_bytes_);
      limits.memory_bytes = std::min(limits.memory_bytes, static_cast<std::uint64_t>(usual));
    }
    return limits;
  }

  void search() {
    const std::vector<Pass> passes = choose_passes(options_.passes);
    Program start = original_;
    for (int attempt = 0; attempt < 3; ++attempt) {
      judge_.base().limits = tight_limits();
      findings_.save_step(start, result_.signature);
      Search search(start, judge_, log_, workspace_, events());
      search.run(passes);
      search.ensure_values();
      best_ = search.best();
      confirm();
      if (result_.reproduced == 0 && uses_up_limits()) {  // the tight limits were too tight
        slack_ *= 8;
        log_.forget_all();  // failures too: they were those of the limits
        continue;
      }
      if (!result_.is_flaky() || judge_.tries() > 1) break;
      // One that was seen and never again is rare, not gone: as if seen in half a run.
      expect_flaky(std::max<double>(result_.reproduced, 0.5) / result_.runs);
      log_.forget_passed();
      start = best_;
    }
    finish();
  }

  void confirm() {
    const std::string text = workspace_.print(best_);
    result_.runs = options_.confirmations;
    judge_.base().limits = limits_;
    if (!uses_up_limits()) {
      result_.reproduced = judge_.count_wanted(text, result_.runs);
      return;
    }
    // Once with all of its limits, the other times with what it was found with.
    result_.reproduced = judge_.count_wanted(text, 1);
    if (result_.reproduced == 1) judge_.base().limits = tight_limits();
    result_.reproduced += judge_.count_wanted(text, result_.runs - 1);
  }

  void show(std::string_view step, const Program& best) const {
    if (!on_progress_) return;
    on_progress_(
        {step, count_calls(*best.graph), result_.calls_before, judge_.trials(), seconds()});
  }

  SearchEvents events() {
    SearchEvents events;
    events.on_progress = [this](const Pass& pass, const Program& best) { show(pass.name, best); };
    events.on_recording = [this](const Outcome& recording) {
      eager_seconds_ = std::min(eager_seconds_, recording.seconds);
      judge_.base().limits = tight_limits();
    };
    events.on_step = [this](const Program& best, const std::string&) {
      findings_.save_step(best, result_.signature);
    };
    events.on_other_failure = [this](const Program& candidate, const std::string&,
                                     const Signature& signature) {
      findings_.save_other(candidate, signature);
    };
    if (options_.keep_passing) {
      events.on_passing = [this](const Program& candidate, const std::string& text) {
        findings_.note_passing(candidate, text);
      };
    }
    return events;
  }

  void finish() {
    result_.calls = count_calls(*best_.graph);
    result_.elements = count_elements(best_);
    result_.file = workspace_.directory() / "repro.py";
    const std::string rate = "# assay reduce: failed in " + std::to_string(result_.reproduced) +
                             " of " + std::to_string(result_.runs) + " runs\n";
    findings_.save_result(best_, result_.signature, rate);
    result_.graph =
        graph::print(*best_.graph, {.metadata = false, .stacks = false, .releases = false});
    if (options_.look_for_others) {
      // Any failure, so as the program was tried at first.
      judge_.base().until.clear();
      judge_.base().accuracy = options_.accuracy != Options::Accuracy::never;
      judge_.base().limits = limits_;
      try {
        look_for_others(original_, best_, options_.keep_passing, judge_, workspace_, findings_);
      } catch (const AllKilled& killed) {  // what was found out before holds
        result_.message = std::string("other failures were not looked for: ") + killed.what();
      }
    }
    result_.others = findings_.others();
    result_.passing = findings_.save_passing();
    workspace_.tidy();
  }

  const Options& options_;
  const std::function<void(const Progress&)>& on_progress_;
  Clock::time_point begin_ = Clock::now();
  Reduced result_;
  Workspace workspace_;
  VerdictLog log_;
  Findings findings_;
  Program original_;
  Judge judge_;
  Limits limits_;             // of a trial that has time
  double eager_seconds_ = 0;  // what the program itself needs
  double value_bytes_ = 0;    // of all its values
  double slack_ = 1;
  Program best_;
};

}  // namespace

Reduced reduce(const repro::ReproFile& file, const Options& options, sandbox::ServerPool& pool,
               const std::function<void(const Progress&)>& on_progress) {
  return Reduction(file, options, pool, on_progress).run();
}

}  // namespace assay::reduce
