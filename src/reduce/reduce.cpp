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
#include "reduce/pipeline_step.h"
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
  identity["strict_candidates"] = options.strict_candidates;
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
      if (search_early()) {
        finish();
      } else if (find_failure()) {
        search(original_);
        finish();
      }
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

  // A search while the first run of the program goes on. It begins with one call of each operator,
  // for whatever failure that shows. True if the program itself then turns out to fail so too; if
  // not, the search was in vain, and only what the first run has shown remains.
  bool search_early() {
    if (!options_.early) return false;
    auto start = propose_small();
    if (!start) return false;
    aim_at({});
    const double eager_seconds = eager_seconds_;
    judge_.start_background(workspace_.print(original_));
    judge_.base().threads = 1;
    const Judgement shown = judge_small(*start);
    const bool is_searched = shown.signature.is_failure() && !uses_up_limits(shown.signature);
    if (is_searched) {
      log_.add(verdict_key(workspace_.print(*start)), shown);
      aim_at(shown.signature);
      start->suspects = shown.suspects;
      is_certain_ = false;
      search(*start);
      is_certain_ = true;
    }
    show("first run", is_searched ? best_ : original_);
    first_run_ = judge_.finish_background();
    if (is_searched && judge_.is_wanted(sandbox::classify(*first_run_))) {
      result_.signature = sandbox::classify(*first_run_);
      findings_.save_step(original_, result_.signature);
      for (const auto& write : held_back_) write();
      return true;
    }
    held_back_.clear();
    if (is_searched) log_.forget_all();
    judge_.set_tries(1);
    judge_.base().threads = options_.trial.threads;
    eager_seconds_ = eager_seconds;
    result_.runs = result_.reproduced = 0;
    return false;
  }

  std::optional<Candidate> propose_small() {
    const std::vector<Pass> passes = choose_passes(options_.passes);
    const auto pass = std::ranges::find(passes, "distinct", &Pass::name);
    if (pass == passes.end()) return std::nullopt;
    return pass->propose(original_, 0, 0, workspace_.store());
  }

  Judgement judge_small(const Candidate& small) {
    const std::string text = workspace_.print(small);
    const std::string key = verdict_key(text);
    if (const auto known = log_.find(key)) return *known;
    judge_.start(text);
    return judge_.wait().second;
  }

  // A call that is taken out turns its neighbors' values into results. Of those that were computed
  // from floating point, an index or a mask can differ by rounding alone, which is not the failure
  // that is looked for, and not a failure at all.
  bool ignores_non_fp(const Signature& wanted) const {
    const bool is_fp = wanted.type == "values" || wanted.type == "nan";
    return wanted.verdict == Verdict::accuracy && is_fp && !options_.strict_candidates;
  }

  // What the program itself is asked about.
  sandbox::Extras all_extras() const {
    sandbox::Extras extras = sandbox::Extras::all();
    extras.all_strides = options_.trial.extras.all_strides;
    return extras;
  }

  // Trials look for this failure; for any if it is none.
  void aim_at(const Signature& wanted) {
    sandbox::Trial& base = judge_.base();
    result_.signature = wanted;
    judge_.look_for(wanted);
    base.limits = tight_limits();
    base.accuracy = options_.accuracy != Options::Accuracy::never;
    base.ignore_non_fp = options_.trial.ignore_non_fp || ignores_non_fp(wanted);
    base.extras = all_extras();
    base.until.reset();
    base.private_cache = false;
    if (!wanted.is_failure()) return;
    base.extras = sandbox::Extras::only(
        wanted.verdict == Verdict::accuracy ? std::string_view(wanted.type) : "");
    base.accuracy = options_.accuracy == Options::Accuracy::always ||
                    wanted.verdict == Verdict::accuracy || wanted.stage == Stage::compare;
    // What gets past the stage that fails need not go further.
    if (!base.accuracy) base.until = wanted.stage;
    // A kernel that does not compile leaves nothing to share, and trials of the same one would wait
    // for each other.
    base.private_cache = wanted.stage == Stage::compile;
  }

  // Does the program fail at all, how, and always?
  bool find_failure() {
    const std::string text = workspace_.print(original_);
    aim_at({});
    Outcome outcome;
    Signature found;
    int tries = 0;
    do {
      outcome = first_run_ ? *std::exchange(first_run_, std::nullopt) : judge_.run(text);
      found = sandbox::classify(outcome);
      ++tries;
      show("first run", original_);
    } while (found.verdict == Verdict::passed && tries < kTriesBeforePassing &&
             seconds() < kSecondsBeforePassing);
    result_.signature = found;
    sandbox::throw_if_internal(found);
    if (found.verdict == Verdict::invalid) refuse_to_check(found);
    if (found.verdict == Verdict::invalid) return stop(Reduced::Status::eager_fails);
    result_.not_compared = outcome.report.not_compared;
    if (found.verdict == Verdict::passed) return stop(Reduced::Status::passes);
    original_.suspects = outcome.report.suspects;
    aim_at(found);
    choose_threads(text);
    // Again, unless that takes long (the end will show it too): a fault that comes and goes must be
    // asked for more often.
    const int runs = outcome.seconds > kSlowTrial ? 0 : 3;
    const int failures = 1 + judge_.count_wanted(text, runs);
    if (failures < tries + runs) expect_flaky(static_cast<double>(failures) / (tries + runs));
    return true;
  }

  // One thread is faster and more repeatable, if the failure shows with one. A fault that comes and
  // goes is given the chances that a program has before it is believed to pass.
  void choose_threads(const std::string& text) {
    const int threads = judge_.base().threads;
    if (threads == 1) return;
    judge_.base().threads = 1;
    const double begin = seconds();
    for (int i = 0; i < kTriesBeforePassing && seconds() - begin < kSecondsBeforePassing; ++i) {
      show("one thread", original_);
      if (judge_.is_wanted(sandbox::classify(judge_.run(text)))) return;
    }
    judge_.base().threads = threads;
    result_.needs_threads = true;
    findings_.set_rerun(options_.rerun + " --threads " + std::to_string(threads));
  }

  // A command that cannot judge the file itself will not judge a part of it either.
  void refuse_to_check(const Signature& found) const {
    if (options_.trial.command.empty()) return;
    throw UserError("the check '" + options_.trial.command + "' gives no verdict on the file: " +
                        found.type + (found.message.empty() ? "" : ": " + found.message),
                    "exit code 0 is a pass, 125 is inconclusive, any other is the failure");
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

  static bool uses_up_limits(const Signature& signature) {
    return signature.verdict == Verdict::timeout || signature.verdict == Verdict::memory;
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

  void search(Candidate start) {
    const std::vector<Pass> passes = choose_passes(options_.passes);
    for (int attempt = 0; attempt < 3; ++attempt) {
      judge_.base().limits = tight_limits();
      write([this, start] { findings_.save_step(start, result_.signature); });
      Search search(start, judge_, log_, workspace_, events());
      search.run(passes);
      search.ensure_values();
      if (count_calls(*search.best().graph) > 1) search.ensure_ends();
      best_ = search.best();
      confirm();
      if (result_.reproduced == 0 && uses_up_limits(result_.signature)) {
        slack_ *= 8;        // the tight limits were too tight
        log_.forget_all();  // failures too: they were those of the limits
        continue;
      }
      if (!result_.is_flaky() || judge_.tries() > 1) break;
      // One that was seen and never again is rare, not gone: as if seen in half a run.
      expect_flaky(std::max<double>(result_.reproduced, 0.5) / result_.runs);
      log_.forget_passed();
      start = best_;
    }
  }

  // To disk, now or when it is certain that it is about the right failure.
  void write(std::function<void()> action) {
    if (is_certain_) {
      action();
    } else {
      held_back_.push_back(std::move(action));
    }
  }

  void confirm() {
    const std::string text = workspace_.print(best_);
    result_.runs = options_.confirmations;
    judge_.base().limits = limits_;
    if (!uses_up_limits(result_.signature)) {
      result_.reproduced = judge_.count_wanted(text, result_.runs);
      return;
    }
    // Once with all of its limits, the other times with what it was found with.
    result_.reproduced = judge_.count_wanted(text, 1);
    if (result_.reproduced == 1) judge_.base().limits = tight_limits();
    result_.reproduced += judge_.count_wanted(text, result_.runs - 1);
  }

  void show(std::string_view step, const Candidate& best) const {
    if (!on_progress_) return;
    on_progress_(
        {step, count_calls(*best.graph), result_.calls_before, judge_.trials(), seconds()});
  }

  SearchEvents events() {
    SearchEvents events;
    events.on_progress = [this](const Pass& pass, const Candidate& best) { show(pass.name, best); };
    events.on_recording = [this](const Outcome& recording) {
      eager_seconds_ = std::min(eager_seconds_, recording.seconds);
      judge_.base().limits = tight_limits();
    };
    events.on_step = [this](const Candidate& best, const std::string&) {
      write([this, best] { findings_.save_step(best, result_.signature); });
    };
    events.on_other_failure = [this](const Candidate& candidate, const std::string&,
                                     const Signature& signature) {
      write([this, candidate, signature] { findings_.save_other(candidate, signature); });
    };
    if (options_.keep_passing) {
      events.on_passing = [this](const Candidate& candidate, const std::string& text) {
        write([this, candidate, text] { findings_.note_passing(candidate, text); });
      };
    }
    return events;
  }

  std::optional<NamedCall> name_call(const std::string& node) const {
    const graph::Node* found = best_.graph->find(node);
    if (found == nullptr || !found->is_call()) return std::nullopt;
    return NamedCall{node, found->target().name(), node + " = " + graph::print_call(*found)};
  }

  // Both ends of the failure in the result.
  void name_ends() {
    const bool raises = result_.signature.verdict != Verdict::accuracy;
    if (count_calls(*best_.graph) == 1) {
      const auto only = name_call(atoms(*best_.graph).front().front()->name());
      if (raises) result_.noticed = only;
      if (!raises) result_.wrong_kind = result_.signature.type;
      result_.wrong = only;
    } else if (best_.ends) {
      result_.noticed = name_call(best_.ends->noticed);
      if (best_.ends->wrong.empty()) return;
      result_.wrong = name_call(best_.ends->wrong.front().node);
      result_.wrong_kind = best_.ends->wrong.front().kind;
    }
  }

  // For the file: only where the ends are not the same call.
  std::string comment_on_ends() const {
    if (!result_.wrong || count_calls(*best_.graph) < 2) return {};
    std::string comment =
        "# assay reduce: wrong (" + result_.wrong_kind + "): " + result_.wrong->call + "\n";
    if (result_.noticed) comment += "# assay reduce: noticed by: " + result_.noticed->call + "\n";
    return comment;
  }

  // A result that is not there every time says nothing about what it depends on.
  void name_step() {
    if (result_.is_flaky() || uses_up_limits(result_.signature)) return;
    judge_.base().limits = limits_;
    result_.pipeline_step = find_pipeline_step(workspace_.print(best_), judge_);
  }

  std::string comment_on_step() const {
    if (result_.pipeline_step.empty()) return {};
    return "# assay reduce: pipeline step: " + result_.pipeline_step + "\n";
  }

  void finish() {
    name_ends();
    name_step();
    result_.threads = judge_.base().threads;
    result_.ignored_non_fp = judge_.base().accuracy && judge_.base().ignore_non_fp;
    result_.calls = count_calls(*best_.graph);
    result_.elements = count_elements(best_);
    result_.file = workspace_.directory() / "repro.py";
    const std::string rate = "# assay reduce: failed in " + std::to_string(result_.reproduced) +
                             " of " + std::to_string(result_.runs) + " runs\n";
    findings_.save_result(best_, result_.signature, comment_on_ends() + comment_on_step() + rate);
    result_.graph =
        graph::print(*best_.graph, {.metadata = false, .stacks = false, .releases = false});
    if (options_.look_for_others) {
      // Any failure, so as the program was tried at first.
      judge_.base().until.reset();
      judge_.base().accuracy = options_.accuracy != Options::Accuracy::never;
      judge_.base().extras = all_extras();
      judge_.base().ignore_non_fp = options_.trial.ignore_non_fp;
      judge_.base().threads = options_.trial.threads;
      judge_.base().limits = limits_;
      try {
        look_for_others(original_, best_, options_.keep_passing, judge_, workspace_, findings_);
      } catch (const AllKilled& killed) {  // what was found out before holds
        result_.message = std::string("did not look for other failures: ") + killed.what();
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
  Candidate original_;
  Judge judge_;
  Limits limits_;             // of a trial that has time
  double eager_seconds_ = 0;  // what the program itself needs
  double value_bytes_ = 0;    // of all its values
  double slack_ = 1;
  std::optional<Outcome> first_run_;  // of the program, if there was one before it was asked for
  bool is_certain_ = true;            // that the failure looked for is the program's
  std::vector<std::function<void()>> held_back_;
  Candidate best_;
};

}  // namespace

Reduced reduce(const repro::ReproFile& file, const Options& options, sandbox::ServerPool& pool,
               const std::function<void(const Progress&)>& on_progress) {
  return Reduction(file, options, pool, on_progress).run();
}

}  // namespace assay::reduce
