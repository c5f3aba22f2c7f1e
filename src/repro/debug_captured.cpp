// The wrapper after dynamo: a captured graph and the whole backend.
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>

#include "assay/error.h"
#include "aten/rng_state.h"
#include "aten/runner.h"
#include "compare/models.h"
#include "observe/observe.h"
#include "repro/accuracy.h"
#include "repro/debug.h"
#include "repro/watch.h"

namespace assay::repro {

namespace {

using aten::Value;

bool has_gradients(const std::vector<Value>& inputs) {
  return c10::GradMode::is_enabled() && std::ranges::any_of(inputs, [](const Value& input) {
           return input.is_tensor() && input.leaf.toTensor().defined() &&
                  input.leaf.toTensor().requires_grad();
         });
}

class WatchedGraph {
 public:
  WatchedGraph(Watch watch, backends::Callable compiled)
      : watch_(std::move(watch)), compiled_(std::move(compiled)) {}

  Value call(const std::vector<Value>& inputs) {
    if (!watch_.is_wanted()) return compiled_(inputs);
    const DebugSuspended inside;
    const Snapshot snapshot = watch_.remember(inputs);
    watch_.before_run(snapshot);
    try {
      if (watch_.config().repro_level == 4) {
        check(inputs, snapshot);
      } else if (!watch_.config().repro_forward_only && has_gradients(inputs) &&
                 !was_tried_.exchange(true)) {
        try_backward(inputs);
      }
      return compiled_(inputs);
    } catch (const AccuracyError&) {
      throw;
    } catch (...) {
      watch_.failed(snapshot);
      throw;
    }
  }

 private:
  void check(const std::vector<Value>& inputs, const Snapshot& snapshot) const {
    const auto difference =
        find_difference(watch_.graph(), compiled_, inputs, watch_.config(),
                        watch_.config().repro_forward_only || !has_gradients(inputs));
    if (difference) watch_.is_inaccurate(snapshot, *difference);
  }

  // What eager refuses too is no failure of the compiler, and perhaps never asked for.
  void try_backward(const std::vector<Value>& inputs) const {
    const aten::RestoreGeneratorScope generator;
    try {
      compare::run_fwd_maybe_bwd(compiled_, inputs);
    } catch (const std::exception&) {
      if (eager_works(inputs)) throw;
    }
  }

  bool eager_works(const std::vector<Value>& inputs) const {
    try {
      const aten::GraphRunner runner(watch_.graph());
      compare::run_fwd_maybe_bwd(
          [&](std::vector<Value> values) { return runner.run(std::move(values)); }, inputs);
      return true;
    } catch (const std::exception& error) {
      observe::log(observe::Component::repro, observe::Level::info, [&] {
        return std::string("backward was not tried, since eager refuses it: ") + error.what();
      });
      return false;
    }
  }

  Watch watch_;
  backends::Callable compiled_;
  std::atomic<bool> was_tried_ = false;
};

}  // namespace

backends::Callable compile_captured_with_debug(const DebugConfig& config, std::string_view backend,
                                               const backends::Subject& subject) {
  Watch watch(config, subject.graph, Stage::after_dynamo, std::string(backend), {});
  const DebugSuspended inside;
  const Snapshot snapshot = watch.remember(subject.inputs);
  watch.before_run(snapshot);
  backends::Callable compiled;
  try {
    compiled = backends::compile(backend, subject);
  } catch (const TraceError&) {
    throw;  // the backend refuses such programs, and says so
  } catch (...) {
    watch.failed(snapshot);
    throw;
  }
  auto watched = std::make_shared<WatchedGraph>(std::move(watch), std::move(compiled));
  return [watched](const std::vector<Value>& inputs) { return watched->call(inputs); };
}

}  // namespace assay::repro
