/// \file The one wrapper around everything that rewrites a graph or makes one out of another: each
/// pass gets its timing, its dump if it changed something, a verification, an off switch, and a
/// counter by which a bisection can stop at the n-th rewrite.
///
/// A pass registers itself in its own file; a pipeline is a short function that runs passes by
/// name, one line each with the reason for its place (autograd/joint_pipeline.cpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/verify.h"
#include "observe/phase.h"

namespace assay::graph {

/// What a pass may know about a call; the aten room supplies it (aten/facts.h). The defaults know
/// nothing, so that passes leave calls alone.
struct CallFacts {
  /// The call only computes its result: it changes no tensor, draws no random number, checks
  /// nothing.
  bool is_pure = false;
  /// The call may write to a tensor.
  bool may_write = true;
  /// A view of its first argument's elements, all of them one by one: with the metadata of the
  /// argument it is the argument, if a permutation keeps the order.
  bool keeps_elements = false;
  /// The result may be in the memory of an argument.
  bool may_share_memory = true;
};
using FactsOf = std::function<CallFacts(const Node&)>;

struct PassOptions {
  FactsOf facts = [](const Node&) { return CallFacts(); };
  VerifyOptions verify;
  std::set<std::string, std::less<>> disabled;
  /// No rewrite is made after this many, as counted by `applications`.
  std::int64_t application_limit = std::numeric_limits<std::int64_t>::max();
  /// The rewrites made so far: by all that run with a copy of these options.
  std::shared_ptr<std::atomic<std::int64_t>> applications =
      std::make_shared<std::atomic<std::int64_t>>(0);
};

/// Handed to a pass while it runs.
class PassContext {
 public:
  PassContext(const PassOptions& options, bool is_required)
      : options_(options), is_required_(is_required) {}

  CallFacts facts(const Node& node) const { return options_.facts(node); }
  const FactsOf& facts() const { return options_.facts; }
  /// To be asked before each rewrite, and obeyed: false once the limit is reached. The rewrites of
  /// a required pass are always made, and not counted.
  bool may_apply();
  std::int64_t applications() const { return own_applications_; }

 private:
  const PassOptions& options_;
  bool is_required_;
  std::int64_t own_applications_ = 0;
};

/// A pass: something with a name that changes a graph or makes one out of another.
struct Pass {
  std::string_view name;  ///< The name of its file.
  std::string_view room;
  std::string_view description;
  /// Rewrites a graph in place; nullptr for a step that makes new graphs (Pipeline::make).
  void (*rewrite)(Graph& graph, PassContext& context) = nullptr;
  /// Nothing works without it: it cannot be switched off, and no limit stops it.
  bool is_required = false;
};

/// Adds a pass to the registry: a constant of the pass's own file. Throws `InternalError` for a
/// name that is taken.
struct RegisterPass {
  explicit RegisterPass(const Pass& pass);
};

/// Every pass of every room, sorted by room and name; also what `assay passes` lists.
std::vector<Pass> all_passes();

/// Switches a pass off. Throws `UserError` if there is none of that name, or it is required.
void disable_pass(PassOptions& options, std::string_view name);

/// Reads the settings disable_passes and pass_limit into `options`. With a limit, rewrites are
/// counted for the whole process, so that a bisection finds one of them. Throws `UserError` for an
/// unknown pass or a bad number.
void read_settings(PassOptions& options);

struct PassRecord {
  std::string name;
  std::int64_t applications = 0;
  bool was_disabled = false;
};

/// One pass while it runs. A pipeline makes it; a pass whose rewrites are spread over something
/// larger (decompositions, made while tracing) uses it directly.
class RunningPass {
 public:
  enum class Timing : std::uint8_t {
    own,    ///< The time until `finish` is a phase of the pass's name.
    outer,  ///< The pass is part of something that is timed itself.
  };
  /// Throws `InternalError` if no pass has that name. `options` must outlive it.
  RunningPass(std::string_view name, const PassOptions& options, Timing timing = Timing::own);

  const Pass& pass() const { return pass_; }
  bool is_enabled() const { return is_enabled_; }
  /// For a required pass that is one rewrite as a whole.
  void start_required();
  PassContext& context() { return context_; }
  /// Verifies the graphs the pass left or made, and reports and dumps them if it applied. Throws
  /// `InternalError` if one is broken.
  PassRecord finish(std::span<const Graph* const> graphs);
  /// The same for a pass on something else than graphs: `verify` throws if that is broken, `size`
  /// counts what it consists of, `print` is its text.
  PassRecord finish(const std::function<void()>& verify, std::int64_t size,
                    const std::function<std::string()>& print);

 private:
  Pass pass_;
  const PassOptions& options_;
  bool is_enabled_;
  PassContext context_;
  std::optional<observe::Phase> phase_;
};

/// Runs passes one after the other, with one set of options.
class Pipeline {
 public:
  explicit Pipeline(PassOptions options) : options_(std::move(options)) {}

  /// Runs a pass that rewrites `graph` in place.
  void run(std::string_view pass, Graph& graph);

  /// Runs a step that makes something new: `make()` is its result, `graphs_of(result)` the graphs
  /// in it, to be verified and dumped.
  template <typename Make, typename GraphsOf>
  auto make(std::string_view pass, const Make& make, const GraphsOf& graphs_of) {
    RunningPass running(pass, options_);
    running.start_required();
    auto result = make();
    const std::vector<const Graph*> graphs = graphs_of(result);
    records_.push_back(running.finish(graphs));
    return result;
  }

  const std::vector<PassRecord>& records() const { return records_; }

 private:
  PassOptions options_;
  std::vector<PassRecord> records_;
};

}  // namespace assay::graph
