/// \file Faults on purpose: makes any backend faulty at a chosen operator, so that everything that
/// finds, compares and reduces failures can be tried on a known one.
///
/// `ASSAY_INJECT_FAULT=relu:runtime_error`, `assay run FILE --inject mm:nan`, or set_faults(). A
/// backend is made faulty through its graph: after each call of the operator stands a call of
/// `torch.ops.assay_testing.fault`, which a run carries out and a trial run does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/store.h"
#include "graph/graph.h"

namespace assay::backends {

enum class FaultKind {
  compile_error,  ///< The backend refuses the graph.
  runtime_error,  ///< The operator raises.
  accuracy,       ///< Its result is wrong by half and more.
  nan,            ///< Its result is NaN.
  dtype,          ///< Its result is right, in another dtype.
  second_call,    ///< Its result is right in the first call of the program, then as for accuracy.
  strides,        ///< Its result is right, with other strides.
  aliasing,       ///< Its result is a copy, even if it should be a view.
  mutation,       ///< It also changes its first operand in place.
  no_exception,   ///< It returns its first operand, so it raises nothing.
  segfault,       ///< It writes to address 0.
  abort,          ///< It aborts the process.
  hang,           ///< It never returns.
  oom,            ///< It uses memory until there is none.
};

const char* to_string(FaultKind kind);

struct Fault {
  /// The operator's base name, `relu`: it stands for torch.relu, F.relu, nn.ReLU, x.relu(),
  /// aten.relu and their in-place forms.
  std::string op;
  FaultKind kind = FaultKind::runtime_error;
  /// It happens in this many percent of the calls; drawn anew in each process.
  int percent = 100;
  /// It happens only where operators may use more than one thread.
  bool needs_threads = false;
};

/// Reads `relu:accuracy`, `relu:abort:50%`, `relu:nan:threads` (only with more than one thread), or
/// several with commas between them. Throws `UserError` that lists the kinds.
std::vector<Fault> parse_faults(std::string_view text);

/// Draws whether a fault of that share happens now. Not from the generator that programs draw from:
/// a fault must not follow their seed.
bool happens(std::int64_t percent, bool needs_threads = false);

/// Writes them as parse_faults() reads them.
std::string to_text(const std::vector<Fault>& faults);

/// From now on every backend of this process has these faults: the setting inject_fault.
void set_faults(const std::vector<Fault>& faults);
/// What the setting inject_fault says. Throws as parse_faults() does.
std::vector<Fault> current_faults();

/// set_faults() until the scope ends.
class FaultScope {
 public:
  explicit FaultScope(const Fault& fault);

 private:
  config::PatchScope scope_;
};

/// True if the node calls the operator `op`, however it is spelt.
bool calls_operator(const graph::Graph& graph, const graph::Node& node, std::string_view op);

/// Puts faults into the graphs a backend is given.
class FaultInjector {
 public:
  FaultInjector(std::vector<Fault> faults, std::string_view backend)
      : faults_(std::move(faults)), backend_(backend) {}

  /// The graph with a fault after each call of its operator; the graph itself if it has none.
  /// Throws `BackendError` for a compile_error.
  std::shared_ptr<const graph::Graph> inject(std::shared_ptr<const graph::Graph> graph);
  /// The same for a graph that was made of `origin`: a fault after whatever became of each call of
  /// its operator there.
  std::shared_ptr<const graph::Graph> inject_where_from(std::shared_ptr<const graph::Graph> graph,
                                                        const graph::Graph& origin);
  const std::vector<Fault>& faults() const { return faults_; }
  /// How many calls were made faulty so far.
  std::size_t count() const { return count_; }

 private:
  void inject_into(graph::Graph& graph);
  void inject_at(graph::Graph& graph, graph::Node& call, const Fault& fault);

  std::vector<Fault> faults_;
  std::string backend_;
  std::size_t count_ = 0;
};

/// While it lives, faults in graphs that this thread runs do nothing: a trial run at compile time
/// must not meet what is to happen at run time.
class FaultsAsleepScope {
 public:
  FaultsAsleepScope();
  ~FaultsAsleepScope();
  FaultsAsleepScope(const FaultsAsleepScope&) = delete;
  FaultsAsleepScope& operator=(const FaultsAsleepScope&) = delete;

  static bool on_this_thread();
};

}  // namespace assay::backends
