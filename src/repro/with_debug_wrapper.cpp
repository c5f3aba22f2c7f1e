#include "repro/with_debug_wrapper.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "assay/error.h"
#include "aten/rng_state.h"
#include "aten/runner.h"
#include "backends/compile.h"
#include "compare/models.h"
#include "observe/observe.h"
#include "repro/accuracy.h"
#include "repro/debug_reporter.h"

namespace assay::repro {

namespace {

using aten::Value;

bool has_gradients(const std::vector<Value>& inputs) {
  return c10::GradMode::is_enabled() && std::ranges::any_of(inputs, [](const Value& input) {
           return input.is_tensor() && input.leaf.toTensor().defined() &&
                  input.leaf.toTensor().requires_grad();
         });
}

// A compiled graph and its runs. Checks run it on copies of its inputs, the captured tensors among
// them, so those are not bound but passed to each call.
class WrappedGraph : public CompiledGraph {
 public:
  WrappedGraph(const CompileRequest& request, DebugReporter reporter,
               std::shared_ptr<const CompiledGraph> compiled)
      : reporter_(std::move(reporter)),
        compiled_(std::move(compiled)),
        role_(request.role),
        bound_(request.inputs.end() - static_cast<std::ptrdiff_t>(request.bound_inputs),
               request.inputs.end()) {}

  void call(std::span<c10::IValue> inputs, Outputs& outputs) const override {
    c10::SmallVector<c10::IValue, 8> all(inputs.begin(), inputs.end());
    all.append(bound_.begin(), bound_.end());
    if (!reporter_.is_wanted()) {
      compiled_->call(all, outputs);
      return;
    }
    const DebugSuspended inside;
    const std::vector<Value> values = aten::unpack_values(all);
    const Snapshot snapshot = reporter_.remember(values);
    reporter_.before_run(snapshot);
    try {
      if (reporter_.config().repro_level == 4) {
        check(values, snapshot);
      } else if (is_differentiated(values) && !was_tried_.exchange(true)) {
        try_backward(values);
      }
      compiled_->call(all, outputs);
    } catch (const AccuracyError&) {
      throw;
    } catch (...) {
      reporter_.failed(snapshot);
      throw;
    }
  }

 private:
  // A half has no gradients of its own.
  bool is_differentiated(const std::vector<Value>& inputs) const {
    return role_ == Role::captured && !reporter_.config().repro_forward_only &&
           has_gradients(inputs);
  }

  compare::Callable function() const {
    return backends::as_value_function(compiled_, reporter_.graph());
  }

  void check(const std::vector<Value>& inputs, const Snapshot& snapshot) const {
    const auto difference = find_difference(reporter_.graph(), function(), inputs,
                                            reporter_.config(), !is_differentiated(inputs));
    if (difference) reporter_.is_inaccurate(snapshot, *difference);
  }

  // The first call that has gradients is first tried on copies of its inputs, so that a fault in
  // backward is seen while the inputs are still there. What fails in eager too is not a failure of
  // the compiler, and perhaps never asked for.
  void try_backward(const std::vector<Value>& inputs) const {
    const aten::RestoreGeneratorScope generator;
    try {
      compare::run_fwd_maybe_bwd(function(), inputs);
    } catch (const std::exception&) {
      if (eager_works(inputs)) throw;
    }
  }

  bool eager_works(const std::vector<Value>& inputs) const {
    try {
      const aten::GraphRunner runner(reporter_.graph());
      compare::run_fwd_maybe_bwd(
          [&](std::vector<Value> values) { return runner.run(std::move(values)); }, inputs);
      return true;
    } catch (const std::exception& error) {
      observe::log(observe::Component::repro, observe::Level::info, [&] {
        return std::string("a failure of the trial run is ignored, because eager fails too: ") +
               error.what();
      });
      return false;
    }
  }

  DebugReporter reporter_;
  std::shared_ptr<const CompiledGraph> compiled_;
  Role role_;
  std::vector<c10::IValue> bound_;
  mutable std::atomic<bool> was_tried_ = false;
};

bool wraps(ReproAfter after, Role role) {
  return after == (role == Role::captured ? ReproAfter::dynamo : ReproAfter::aot);
}

std::shared_ptr<const CompiledGraph> compile_wrapped(const Compiler& compiler,
                                                     const CompileRequest& request,
                                                     const DebugConfig& config) {
  const bool is_half = request.role != Role::captured;
  DebugReporter reporter(config, request.graph, is_half ? Stage::after_aot : Stage::after_dynamo,
                         request.context, is_half ? to_string(request.role) : "");
  const DebugSuspended inside;
  // A backward graph that is compiled early has no inputs yet.
  const Snapshot snapshot = request.inputs.empty()
                                ? snapshot_of_metadata(*request.graph)
                                : reporter.remember(aten::unpack_values(request.inputs));
  reporter.before_run(snapshot);
  CompileRequest unbound = request;
  unbound.bound_inputs = 0;
  std::shared_ptr<const CompiledGraph> compiled;
  try {
    compiled = compiler(unbound);
  } catch (const TraceError&) {
    throw;  // the compiler rejects such programs, with a message of its own
  } catch (...) {
    reporter.failed(snapshot);
    throw;
  }
  return std::make_shared<const WrappedGraph>(request, std::move(reporter), std::move(compiled));
}

}  // namespace

Compiler with_debug_wrapper(Compiler compiler, const DebugConfig& config,
                            std::shared_ptr<std::atomic<bool>> has_wrapped) {
  return [compiler = std::move(compiler), config,
          has_wrapped = std::move(has_wrapped)](const CompileRequest& request) {
    if (!wraps(config.repro_after, request.role)) return compiler(request);
    *has_wrapped = true;
    return compile_wrapped(compiler, request, config);
  };
}

}  // namespace assay::repro
