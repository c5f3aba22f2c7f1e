/// \file Finds the smallest program that fails as a given one does. What `assay reduce` calls.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "repro/repro_file.h"
#include "sandbox/server.h"
#include "sandbox/signature.h"

namespace assay::reduce {

struct Options {
  /// What trials have in common: backend, faults, limits, ...; `accuracy` is chosen here. `threads`
  /// are the program's; candidates have one if the failure shows with one too.
  sandbox::Trial trial = {};
  /// Limits are what the program needs eagerly, times this, on top of those of `trial`.
  double limit_factor = 0;
  enum class Accuracy { automatic, always, never };
  /// Automatic: look for wrong numbers if nothing raises.
  Accuracy accuracy = Accuracy::automatic;
  /// Compare integers and bools also in the candidates of a failure in floating point, where
  /// rounding alone can change them. The program itself is always compared in full.
  bool strict_candidates = false;
  std::filesystem::path output;
  /// How to see the failure of a result, for a comment in its file.
  std::string rerun = {};
  bool restart = false;       ///< Forget what an earlier run of the same reduction found out.
  bool keep_passing = false;  ///< Also save the nearest program that does not fail.
  int confirmations = 5;      ///< How often the result is run again.
  /// Begin to search while the first run of the program goes on: for compilers that take seconds.
  bool early = false;
  /// Try the program without the operators that are to blame: the rest may fail too.
  bool look_for_others = true;
  std::vector<std::string> passes = {};  ///< Only these; empty: all.
};

/// How far it is.
struct Progress {
  std::string_view pass;
  std::size_t calls = 0;
  std::size_t calls_before = 0;
  std::int64_t trials = 0;
  double seconds = 0;
};

struct OtherFailure {
  sandbox::Signature signature;
  std::filesystem::path file;
};

/// A call of the result that matters to the failure.
struct NamedCall {
  std::string node;  ///< Its name in the file.
  std::string op;    ///< `torch.cumsum`
  std::string call;  ///< `cumsum = torch.cumsum(x, 0)`
};

struct Reduced {
  enum class Status {
    reduced,
    passes,       ///< It does not fail, so there is nothing to reduce.
    eager_fails,  ///< Not the compiler's fault; `signature` says how.
    killed,       ///< Trials were killed from outside; `message` says how.
  };

  Status status = Status::reduced;
  std::string message = {};
  sandbox::Signature signature = {};
  std::filesystem::path file = {};
  std::string graph = {};  ///< The result's graph as text.
  std::size_t calls_before = 0;
  std::size_t calls = 0;
  std::int64_t elements_before = 0;  ///< Of all inputs.
  std::int64_t elements = 0;
  std::int64_t trials = 0;
  std::int64_t killed_trials = 0;
  double seconds = 0;
  bool is_resumed = false;
  std::size_t known_verdicts = 0;       ///< From an earlier run.
  std::vector<std::string> notes = {};  ///< About the inputs.
  int runs = 0;                         ///< The result was run again this often,
  int reproduced = 0;                   ///< and failed the same way this often.
  /// Integers and bools of candidates were not compared: see Options::strict_candidates.
  bool ignored_non_fp = false;
  std::string not_compared = {};  ///< Of a program that passes: what its comparison left out.
  int threads = 1;                ///< Of the trials.
  bool needs_threads = false;     ///< With one thread it does not fail like this.
  /// The call whose result is not eager's, if it is known, and what about it is not: dtype, ...
  std::optional<NamedCall> wrong = {};
  std::string wrong_kind = {};
  /// The call that fails because of it, or by itself; nothing if no call raises, and the results
  /// show it.
  std::optional<NamedCall> noticed = {};
  std::string pipeline_step = {};  ///< Of the kernels, that is wrong; empty if it is not known.
  std::vector<OtherFailure> others = {};
  std::optional<std::filesystem::path> passing = {};

  bool is_flaky() const { return reproduced < runs; }
};

/// Throws `UserError` if the file cannot be used.
Reduced reduce(const repro::ReproFile& file, const Options& options, sandbox::ServerPool& pool,
               const std::function<void(const Progress&)>& on_progress = {});

}  // namespace assay::reduce
