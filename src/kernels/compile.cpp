#include "kernels/compile.h"

#include <algorithm>

#include "aten/facts.h"
#include "aten/runner.h"
#include "graph/print.h"
#include "kernels/compiled_program.h"
#include "kernels/emit.h"
#include "kernels/inline_producers.h"
#include "kernels/kernel_cache.h"
#include "kernels/lower.h"
#include "kernels/memory_plan.h"
#include "kernels/merge_kernels.h"
#include "kernels/print.h"
#include "kernels/program_uses.h"
#include "kernels/report.h"
#include "kernels/schedule.h"
#include "kernels/simplify.h"
#include "kernels/split_reductions.h"
#include "kernels/step_pipeline.h"
#include "kernels/toolchain.h"
#include "kernels/verify.h"
#include "observe/observe.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_lower({.name = "lower_to_loops",
                                            .room = "kernels",
                                            .description = "operators become loops",
                                            .is_required = true});

LoopProgram lowered(StepPipeline& pipeline, const CompileRequest& request) {
  return pipeline.make(
      "lower_to_loops",
      [&](StepContext& context) {
        LoopProgram program = lower(request.graph);
        for (Step& step : program.steps) {
          if (auto* kernel = std::get_if<Kernel>(&step)) context.applied(*kernel);
        }
        return program;
      },
      [](const LoopProgram& program) { verify(program); },
      static_cast<std::int64_t>(request.graph->size()),
      [](const LoopProgram& program) { return print(program); });
}

void fuse_and_schedule(StepPipeline& pipeline, LoopProgram& program) {
  // First: a producer that moves into its consumer leaves fewer kernels to merge, and views
  // (transposes, slices, broadcasts) are seen through only here.
  pipeline.run("inline_producers", program, &inline_producers);

  // Before merging, which must not tie what follows to a reduction that has too few results to
  // keep the machine busy.
  pipeline.run("split_reductions", program, &split_reductions);

  // What is left has several consumers, or is a reduction: it runs beside what it shares loops
  // with.
  pipeline.run("merge_kernels", program, &merge_kernels);

  // After fusion, which leaves equal loads and unused stores behind.
  pipeline.run("simplify", program, &simplify);

  // Last of the loops: the order of memory accesses is known only now.
  pipeline.run("schedule", program, &schedule);

  // Before the memory plan, which then has a place for the results.
  pipeline.run("use_out_variants", program, &use_out_variants);
}

MemoryPlan planned(StepPipeline& pipeline, const LoopProgram& program) {
  return pipeline.make(
      "reuse_in_place", [&](StepContext& context) { return plan_memory(program, context); },
      [](const MemoryPlan&) {}, static_cast<std::int64_t>(program.buffers.size()),
      [](const MemoryPlan& plan) {
        return "arena of " + std::to_string(plan.arena_bytes) + " bytes, peak " +
               std::to_string(plan.peak_bytes) + " bytes";
      });
}

// A kernel's arguments and points without machine code.
std::vector<EmittedKernel> kernels_to_interpret(const LoopProgram& program) {
  std::vector<EmittedKernel> kernels;
  for (const Step& step : program.steps) {
    if (!std::holds_alternative<Kernel>(step)) continue;
    const StepUses uses = uses_of(step);
    EmittedKernel& kernel = kernels.emplace_back();
    for (const auto* list : {&uses.reads, &uses.writes}) {
      for (BufferId id : *list) {
        if (program.buffers[id].kind != Buffer::Kind::scratch &&
            std::ranges::find(kernel.buffers, id) == kernel.buffers.end()) {
          kernel.buffers.push_back(id);
        }
      }
    }
  }
  return kernels;
}

ProgramCode compiled_code(const LoopProgram& program, const KernelOptions& options) {
  ProgramCode code;
  if (options.interpret) {
    code.kernels = kernels_to_interpret(program);
    return code;
  }
  EmittedProgram emitted;
  {
    const observe::Phase phase("emit", observe::Component::inductor);
    emitted = emit(program, native_target());
  }
  observe::artifact(observe::Artifact::output_code, [&] { return emitted.code; });
  const observe::Phase phase("compile_kernels", observe::Component::inductor);
  const auto library =
      compile_and_load(options.code.empty() ? emitted.code : options.code, native_target());
  for (const EmittedKernel& kernel : emitted.kernels) {
    code.functions.push_back(
        reinterpret_cast<KernelFunction>(library->symbol(kernel.symbol)));  // NOLINT: dlsym's way
  }
  code.kernels = std::move(emitted.kernels);
  code.library = library;
  return code;
}

void log_perf_hints(const LoopProgram& program) {
  if (!observe::wants(observe::Artifact::perf_hints)) return;
  const std::string hints = perf_hints_text(program);
  if (!hints.empty()) observe::artifact(observe::Artifact::perf_hints, [&] { return hints; });
}

bool has_kernels(const LoopProgram& program) {
  return std::ranges::any_of(program.steps,
                             [](const Step& step) { return std::holds_alternative<Kernel>(step); });
}

}  // namespace

std::shared_ptr<const CompiledGraph> compile(const CompileRequest& request,
                                             const KernelOptions& options) {
  // Without a compiler there are no kernels; toolchain() has warned.
  if (!options.interpret && toolchain() == nullptr) return aten::run_with_aten(request);

  StepPipeline pipeline(aten::pass_options());
  LoopProgram program = lowered(pipeline, request);
  program.name = to_string(request.role);
  if (!has_kernels(program)) {
    log_perf_hints(program);
    return aten::run_with_aten(request);
  }
  observe::artifact(observe::Artifact::post_grad_graphs,
                    [&] { return graph::print(*request.graph); });
  observe::artifact(observe::Artifact::ir_pre_fusion, [&] { return print(program); });
  fuse_and_schedule(pipeline, program);
  observe::artifact(observe::Artifact::ir_post_fusion, [&] { return print(program); });
  observe::artifact(observe::Artifact::schedule, [&] { return schedule_text(program); });
  log_perf_hints(program);
  MemoryPlan plan = planned(pipeline, program);
  ProgramCode code = compiled_code(program, options);
  return std::make_shared<const CompiledProgram>(std::move(program), std::move(plan),
                                                 std::move(code), request.context->source);
}

}  // namespace assay::kernels
