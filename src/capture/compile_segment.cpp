#include "capture/compile_segment.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/utils/pybind.h>

#include "assay/error.h"
#include "aten/input_copies.h"
#include "aten/rng_state.h"
#include "capture/object_graph.h"
#include "capture/piecewise_graph.h"
#include "observe/observe.h"
#include "repro/config.h"
#include "repro/debug.h"

namespace assay::capture {

namespace {

// The first call of a program has run eagerly already. Who looks for a failure of the compiled
// graph should not need a second call to see it: it is run on copies of the inputs.
void try_compiled(const Segment& segment, const std::vector<c10::IValue>& example_inputs) {
  const aten::RestoreGeneratorScope generator;
  const std::vector<aten::Value> copies = aten::copy_inputs(aten::unpack_values(example_inputs));
  c10::SmallVector<c10::IValue, 16> arguments;
  for (const aten::Value& copy : copies) arguments.push_back(aten::pack_value(copy));
  c10::SmallVector<c10::IValue, 16> outputs;
  segment.compiled->call({arguments.data(), arguments.size()}, outputs);
}

// For a piece of a graph: what cannot be differentiated ahead of time runs as it is.
Compiler piece_compiler(std::shared_ptr<const Backend> backend) {
  return [backend = std::move(backend)](const CompileRequest& request) {
    try {
      return repro::compile_with_debug(*backend, request);
    } catch (const TraceError& error) {
      observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
        return "a part of a graph runs with backend eager, not " + backend->name + ": " +
               error.detail().message;
      });
      CompileRequest as_it_is = request;
      as_it_is.options.clear();
      return repro::compile_with_debug(*find_backend("eager"), std::move(as_it_is));
    }
  };
}

}  // namespace

CompiledSegment compile_graph(const Segment& segment, const CaptureSettings& settings,
                              std::vector<c10::IValue> example_inputs) {
  CompileRequest request;
  request.graph = segment.graph;
  request.inputs = std::move(example_inputs);
  request.options = settings.options;
  const at::AutoGradMode mode(segment.runs_with_grad || at::GradMode::is_enabled());
  const pybind11::gil_scoped_release unlocked;
  try {
    if (!segment.hooked.empty() && settings.backend->compiles_halves) {
      auto pieces = make_piecewise(request, piece_compiler(settings.backend), segment.hooked);
      if (pieces != nullptr) return {std::move(pieces), ""};
      throw TraceError("a tensor inside of the graph gets a hook", "backend 'eager' runs it");
    }
    return {repro::compile_with_debug(*settings.backend, request), ""};
  } catch (const TraceError& error) {
    // The program is fine, but cannot be differentiated ahead of time: what can be is compiled in
    // pieces, or the captured graph runs as it is.
    if (auto pieces = make_piecewise(request, piece_compiler(settings.backend), segment.hooked)) {
      return {std::move(pieces), ""};
    }
    request.options.clear();
    return {repro::compile_with_debug(*find_backend("eager"), std::move(request)),
            error.detail().message};
  }
}

std::shared_ptr<const CompiledGraph> compile_fixed_parts(const Segment& segment,
                                                         const CaptureSettings& settings,
                                                         const FixedParts& parts) {
  if (!settings.backend->compiles_halves || !segment.hooked.empty()) return nullptr;
  CompileRequest request;
  request.options = settings.options;
  return parts.make(request, piece_compiler(settings.backend));
}

std::string compile_segment(Segment& segment, const CaptureSettings& settings,
                            std::vector<c10::IValue> example_inputs) {
  CompiledSegment made = compile_graph(segment, settings, example_inputs);
  segment.compiled = std::move(made.compiled);
  segment.takes_objects = dynamic_cast<const ObjectGraph*>(segment.compiled.get());
  if (segment.sizes != nullptr) {
    segment.settings = std::make_shared<const CaptureSettings>(settings);
    segment.sizes->add_recorded(example_inputs, segment.compiled);
  }
  if (repro::current_debug_config().repro_after != repro::ReproAfter::none) {
    const at::AutoGradMode mode(segment.runs_with_grad || at::GradMode::is_enabled());
    const pybind11::gil_scoped_release unlocked;
    try_compiled(segment, example_inputs);
  }
  return made.eager_reason;
}

}  // namespace assay::capture
