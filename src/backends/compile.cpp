#include "backends/compile.h"

#include "assay/error.h"
#include "aten/result_structure.h"
#include "backends/bind_inputs.h"
#include "backends/fault.h"
#include "backends/with_faults.h"
#include "backends/with_steps.h"
#include "backends/with_timing.h"
#include "base/nearest_names.h"

namespace assay {

std::shared_ptr<const CompiledGraph> compile_graph(std::string_view backend,
                                                   CompileRequest request) {
  return backends::compile(*find_backend(backend), std::move(request), {});
}

namespace backends {

namespace {

void check_options(const Backend& backend, const BackendOptions& options) {
  if (backend.accepts_any_option) return;
  for (const auto& [name, value] : options) {
    const auto found = std::ranges::find(backend.options, name, &BackendOption::name);
    if (found == backend.options.end()) {
      std::vector<std::string> names;
      for (const BackendOption& option : backend.options) names.push_back(option.name);
      const auto nearest = base::nearest_names(name, names, 1);
      throw UserError("the backend '" + backend.name + "' has no option '" + name + "'",
                      nearest.empty() ? "`assay backends --json` lists the options"
                                      : "did you mean " + nearest[0] + "?");
    }
    if (found->default_value.index() != value.index()) {
      constexpr std::array kTypes = {"a bool", "an integer", "a float", "a string"};
      throw UserError("the option '" + name + "' of the backend '" + backend.name + "' must be " +
                      kTypes.at(found->default_value.index()) + ", found " +
                      kTypes.at(value.index()));
    }
  }
}

// Everything that stands around a compiler, of a captured graph or of a half, from the inside out.
Compiler decorate(Compiler compiler, const std::shared_ptr<FaultInjection>& faults,
                  const Surroundings& surroundings) {
  // Innermost: to everything else the compiler itself is broken.
  if (faults != nullptr) compiler = with_faults(std::move(compiler), faults);
  // Writes down what this very compiler is given and prints, with its faults.
  if (surroundings.debug_directory) compiler = surroundings.debug_directory(std::move(compiler));
  // Sees the compiler fail, and what it was given.
  if (surroundings.debug_wrapper) compiler = surroundings.debug_wrapper(std::move(compiler));
  // Outermost: the time and the guide's steps include whatever is done on a failure.
  compiler = with_steps(std::move(compiler));
  return with_timing(std::move(compiler));
}

}  // namespace

std::shared_ptr<const CompiledGraph> compile(const Backend& backend, CompileRequest request,
                                             const Surroundings& surroundings) {
  check_options(backend, request.options);
  std::shared_ptr<FaultInjection> faults;
  if (auto wanted = current_faults(); !wanted.empty()) {
    faults = std::make_shared<FaultInjection>(
        std::move(wanted), backend.name, surroundings.faults_in_halves && backend.compiles_halves);
  }
  auto context = std::make_shared<CompileContext>(*request.context);
  context->backend = backend.name;
  context->send_backend = backend.send;
  context->decorate = [faults, surroundings](Compiler compiler) {
    return decorate(std::move(compiler), faults, surroundings);
  };
  request.context = std::move(context);
  Compiler compiler = backend.compile;
  if (!backend.binds_inputs) compiler = bind_inputs(std::move(compiler));
  auto compiled = decorate(std::move(compiler), faults, surroundings)(request);
  if (faults != nullptr) faults->warn_if_none();
  return compiled;
}

CompileRequest request_for_values(std::shared_ptr<const graph::Graph> graph,
                                  const std::vector<aten::Value>& inputs,
                                  const graph::python::Source* source) {
  CompileRequest request;
  request.graph = std::move(graph);
  request.inputs.reserve(inputs.size());
  for (const aten::Value& input : inputs) request.inputs.push_back(aten::pack_value(input));
  if (source != nullptr) {
    request.context = std::make_shared<const CompileContext>(CompileContext{.source = source});
  }
  return request;
}

compare::Callable as_value_function(std::shared_ptr<const CompiledGraph> compiled,
                                    const graph::Graph& graph) {
  return [compiled = std::move(compiled),
          structure =
              aten::ResultStructure(graph.output()->args()[0])](std::vector<aten::Value> inputs) {
    c10::SmallVector<c10::IValue, 8> packed;
    packed.reserve(inputs.size());
    for (aten::Value& input : inputs) packed.push_back(aten::pack_value(std::move(input)));
    c10::SmallVector<c10::IValue, 8> outputs;
    compiled->call(packed, outputs);
    return structure.fill(outputs);
  };
}

compare::Callable compile_for_values(std::string_view backend,
                                     std::shared_ptr<const graph::Graph> graph,
                                     const std::vector<aten::Value>& inputs,
                                     const graph::python::Source* source) {
  auto compiled = compile_graph(backend, request_for_values(graph, inputs, source));
  return as_value_function(std::move(compiled), *graph);
}

}  // namespace backends

}  // namespace assay
