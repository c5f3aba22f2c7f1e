/// \file One trial: a candidate program, and how a process of its own ended that ran it.
///
/// docs/toolbox.md has the protocol by which trials and their outcomes travel between the reducer
/// and a trial server.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/stage.h"

namespace assay::sandbox {

/// What the process of a trial may use. Memory is counted on top of what the server has; memory and
/// CPU time are those of one thread (limits_for).
struct Limits {
  double wall_seconds = 60;
  double cpu_seconds = 60;
  std::uint64_t memory_bytes = std::uint64_t{4} << 30U;
  std::size_t output_bytes = std::size_t{64} << 10U;
};

/// What a trial with accuracy compares besides results: kinds of compare::Comparison. They cost
/// little, but candidates of one kind of failure are not to show another.
struct Extras {
  bool strides = false;
  bool aliasing = false;
  bool second_call = false;
  bool exception = false;  ///< A program that eager refuses: does the compiled one raise the same?
  /// Strides that eager does not promise, too. Asked for where a program is known to show them.
  bool all_strides = false;

  /// Whatever is a promise of eager's.
  static Extras all() { return {true, true, true, true, false}; }
  /// Only the one by which a failure is known; none for other types.
  static Extras only(std::string_view type);
};

/// Files of commands' candidates in `Trial::save_directory` begin with this.
inline constexpr std::string_view kCandidatePrefix = "candidate_";

struct Trial {
  enum class Task {
    test,     ///< Compile and run with the backend; does it fail?
    record,   ///< Run eagerly and report every node's value.
    analyze,  ///< Compile every call alone: which is the first that is wrong?
    locate,   ///< As test, with accuracy, and report every result that differs, not only one.
  };

  Task task = Task::test;
  std::string file;            ///< A repro file's text.
  std::string save_directory;  ///< Holds `storages/`.
  std::string backend = "eager";
  bool accuracy = false;  ///< Compare with eager too.
  Extras extras = {};     ///< And what else of it.
  bool eager = true;      ///< A candidate that fails eagerly is invalid.
  /// With accuracy: eager is compared with itself first, and not only where results differ.
  bool repeat_eager = false;
  bool backward = true;  ///< Where something requires grad.
  /// The stage in which the failure is looked for: what gets past it passes. None: to the end.
  std::optional<Stage> until = std::nullopt;
  bool ignore_non_fp = false;  ///< Compare floating-point results only.
  bool autocast = false;
  std::string inject;          ///< Faults on purpose, backends::parse_faults.
  std::string disable_passes;  ///< Switched off besides those of the setting.
  std::uint64_t seed = 0;
  /// Inside operators, as torch.set_num_threads() has it. The server itself has one.
  int threads = 1;
  /// For stock's stack: settings as (name, JSON value), and Python lines to execute first.
  std::vector<std::pair<std::string, std::string>> config = {};
  std::string setup;
  /// Compiled kernels are shared with the worker's own trials only (stock's stack).
  bool private_cache = false;
  /// A shell command that is given the file's name and judges it, instead of a backend.
  std::string command;
  Limits limits = {};

  bool is_command() const { return !command.empty() && task == Task::test; }
};

/// A result that is not eager's.
struct Difference {
  std::string where;  ///< `output[3]`, `gradient['x']`
  std::string kind;   ///< values, integers, nan, dtype, shape, structure, ...
};

/// What the process said about itself, each as far as it is known.
struct Report {
  /// passed, failed, invalid, or internal: a bug in Assay; empty if it did not come to that
  std::string status;
  std::optional<Stage> stage = std::nullopt;
  std::string type;  ///< Of the exception.
  std::string message;
  std::string node;
  std::string op;  ///< Qualified: torch.ops.aten.relu.default
  /// Nodes of the file's graph that the failing node was made of.
  std::vector<std::string> suspects;
  std::string accuracy_kind;  ///< values, integers, nan, dtype, shape, structure
  std::string accuracy_where;
  double error = 0;
  double tolerance = 0;
  std::vector<Difference> differences;  ///< For Task::locate, in the order of the results.
  std::string not_compared;             ///< What the comparison left out, in a sentence.
  std::string values;                   ///< For Task::record, JSON.
};

struct Outcome {
  enum class Limit { none, wall, cpu };

  std::optional<int> exit_code;
  std::optional<int> signal;
  Limit limit = Limit::none;  ///< The server ended it.
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t peak_bytes = 0;
  std::string output;  ///< The end of what it printed.
  Report report;
  /// The server could not carry out the trial; nothing else is set.
  std::string server_error;
};

/// What the process of a trial may use with that many threads. The limits of a trial are those for
/// one: each further one has a stack and a heap of its own, and CPU time to spend.
Limits limits_for(const Limits& limits, int threads);

nlohmann::json to_json(const Trial& trial);
Trial trial_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Outcome& outcome, const nlohmann::json& report);
/// Throws `UserError` for a stage that there is not: another version's server.
Outcome outcome_from_json(const nlohmann::json& json);

}  // namespace assay::sandbox
