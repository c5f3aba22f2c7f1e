#include "kernels/compile.h"

#include <algorithm>
#include <unordered_map>

#include "aten/facts.h"
#include "aten/runner.h"
#include "graph/print.h"
#include "kernels/channels_last.h"
#include "kernels/compiled_program.h"
#include "kernels/emit.h"
#include "kernels/extern_call.h"
#include "kernels/inline_producers.h"
#include "kernels/kernel_cache.h"
#include "kernels/known_kernels.h"
#include "kernels/lower.h"
#include "kernels/matmul.h"
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
#include "kernels/unroll_joins.h"
#include "kernels/verify.h"
#include "observe/observe.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_lower({.name = "lower_to_loops",
                                            .room = "kernels",
                                            .description = "operators become loops",
                                            .is_required = true});

// The graph as the libraries that compute convolutions and products like it best.
std::shared_ptr<const graph::Graph> prepared_graph(const CompileRequest& request,
                                                   const graph::PassOptions& options) {
  // What a training step saves for its backward must be in the order that the backward was made
  // for.
  const bool is_inference = request.role == Role::inference;
  const bool orders_images = is_inference && gains_by_channels_last(*request.graph);
  const bool opens_attention = is_inference && gains_by_products_of_attention(*request.graph);
  const bool splits_products = gains_by_split_addmm(*request.graph);
  if (!orders_images && !opens_attention && !splits_products) return request.graph;
  std::shared_ptr<graph::Graph> copy = request.graph->clone();
  graph::Pipeline pipeline(options);
  if (orders_images) {
    pipeline.run("channels_last", *copy);
    pipeline.run("products_of_convolutions", *copy);
  }
  if (opens_attention) pipeline.run("products_of_attention", *copy);
  if (splits_products) pipeline.run("split_addmm", *copy);
  return copy;
}

LoopProgram lowered(StepPipeline& pipeline, const std::shared_ptr<const graph::Graph>& graph) {
  return pipeline.make(
      "lower_to_loops",
      [&](StepContext& context) {
        LoopProgram program = lower(graph);
        for (Step& step : program.steps) {
          if (auto* kernel = std::get_if<Kernel>(&step)) context.applied(*kernel);
        }
        return program;
      },
      [](const LoopProgram& program) { verify(program); }, static_cast<std::int64_t>(graph->size()),
      [](const LoopProgram& program) { return print(program); });
}

void fuse_and_schedule(StepPipeline& pipeline, LoopProgram& program) {
  // First: a producer that moves into its consumer leaves fewer kernels to merge, and views
  // (transposes, slices, broadcasts) are seen through only here.
  pipeline.run("inline_producers", program, &inline_producers);

  // After that, so that a joined tensor has few readers and each of them is cut once.
  pipeline.run("unroll_joins", program, &unroll_joins);

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

bool has_kernels(const LoopProgram& program) {
  return std::ranges::any_of(program.steps,
                             [](const Step& step) { return std::holds_alternative<Kernel>(step); });
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
  if (!has_kernels(program)) return code;
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
  std::unordered_map<std::string, KnownKernel> functions;
  if (options.code.empty()) {
    std::vector<KnownKernel> loaded = load_kernels(emitted, native_target());
    for (std::size_t k = 0; k < loaded.size(); ++k) {
      functions.emplace(emitted.functions[k].symbol, std::move(loaded[k]));
    }
  } else {
    const auto library = compile_and_load(options.code, native_target());
    for (const EmittedFunction& function : emitted.functions) {
      functions.emplace(function.symbol,
                        KnownKernel{library->symbol(function.symbol), {}, library});
    }
  }
  for (const EmittedKernel& kernel : emitted.kernels) {
    const KnownKernel& found = functions.at(kernel.symbol);
    code.functions.push_back(
        reinterpret_cast<KernelFunction>(found.function));  // NOLINT: dlsym's way
    code.sizes.push_back(found.sizes);
    code.libraries.push_back(found.library);
  }
  code.kernels = std::move(emitted.kernels);
  return code;
}

void log_perf_hints(const LoopProgram& program) {
  if (!observe::wants(observe::Artifact::perf_hints)) return;
  const std::string hints = perf_hints_text(program);
  if (!hints.empty()) observe::artifact(observe::Artifact::perf_hints, [&] { return hints; });
}

// Products that this room computes otherwise than ATen would.
bool has_products(const LoopProgram& program) {
  return std::ranges::any_of(program.steps, [](const Step& step) {
    const auto* call = std::get_if<ExternCall>(&step);
    return call != nullptr && is_onednn_product(*call);
  });
}

}  // namespace

std::shared_ptr<const CompiledGraph> compile(const CompileRequest& request,
                                             const KernelOptions& options) {
  // Without a compiler there are no kernels; toolchain() has warned.
  if (!options.interpret && toolchain() == nullptr) return aten::run_with_aten(request);

  const graph::PassOptions pass_options = aten::pass_options();
  StepPipeline pipeline(pass_options);
  LoopProgram program = lowered(pipeline, prepared_graph(request, pass_options));
  program.name = to_string(request.role);
  program.original = request.graph;
  if (!has_kernels(program) && !has_products(program)) {
    log_perf_hints(program);
    return aten::run_with_aten(request);
  }
  observe::artifact(observe::Artifact::post_grad_graphs,
                    [&] { return graph::print(*program.graph); });
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
