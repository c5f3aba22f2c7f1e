/// \file The pass wrapper for loop programs (graph/pass_manager.h is the one for graphs): every
/// step of the pipeline is timed, verified, dumped if it changed something, can be switched off,
/// and asks before each rewrite, by the same counter as all passes. A rewrite can also be made
/// wrong on purpose, to try the tools that find such a fault.
#pragma once

#include <string_view>
#include <vector>

#include "graph/pass_manager.h"
#include "kernels/ir.h"

namespace assay::kernels {

/// Handed to a step while it runs.
class StepContext {
 public:
  StepContext(graph::RunningPass& running, std::string_view name)
      : running_(running), name_(name) {}

  /// To be asked before each rewrite, and obeyed.
  bool may_apply() { return running_.is_enabled() && running_.context().may_apply(); }
  /// To be called with the kernel that a rewrite changed or made: puts the fault into it that the
  /// setting `kernel_fault` asks for.
  void applied(Kernel& kernel);

 private:
  graph::RunningPass& running_;
  std::string_view name_;
};

using ProgramStep = void (*)(LoopProgram& program, StepContext& context);

/// Runs the steps of one program, with one set of options.
class StepPipeline {
 public:
  explicit StepPipeline(graph::PassOptions options) : options_(std::move(options)) {}

  /// Runs a step that rewrites the program in place.
  void run(std::string_view name, LoopProgram& program, ProgramStep step);

  /// Runs a step that makes something new: `make(context)` is its result, and `check(result)`
  /// throws if it is broken.
  template <typename Make, typename Check, typename Print>
  auto make(std::string_view name, const Make& make, const Check& check, std::int64_t size,
            const Print& print) {
    graph::RunningPass running(name, options_);
    if (running.pass().is_required) running.start_required();
    StepContext context(running, name);
    auto result = make(context);
    running.finish([&] { check(result); }, size, [&] { return print(result); });
    return result;
  }

 private:
  graph::PassOptions options_;
};

}  // namespace assay::kernels
