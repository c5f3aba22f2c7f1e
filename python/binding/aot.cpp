#include "aot.h"

#include <memory>
#include <string>

#include "assay/backend.h"
#include "aten/record_calls.h"
#include "autograd/aot.h"
#include "autograd/decompositions.h"
#include "backends/compile.h"
#include "fast_call.h"
#include "function_handle.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "python_backend.h"
#include "python_values.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

autograd::Partitioner partitioner_named(const std::string& name) {
  if (name == "default") return &autograd::partition_default;
  if (name == "min_cut") return &autograd::partition_min_cut;
  throw UserError("unknown partitioner '" + name + "'", "the partitioners are: default, min_cut");
}

// What tracing found out, for assay.aot.trace.
struct TraceHandle {
  std::string captured;
  std::string joint;
  std::string forward;
  std::string backward;
  std::uint64_t saved_bytes = 0;
  std::size_t nodes = 0;
};

TraceHandle trace_captured(const graph::Graph& graph, const std::vector<aten::Value>& inputs,
                           const std::string& partitioner, bool decompose) {
  TraceHandle handle;
  handle.captured = graph::print(graph);
  autograd::AotOptions options;
  options.partitioner = partitioner_named(partitioner);
  options.decompose = decompose;
  const std::shared_ptr<const graph::Graph> borrowed(&graph, [](const void*) {});
  const autograd::AotGraph compiled(backends::request_for_values(borrowed, inputs), options);
  const autograd::CompiledHalves& halves = compiled.halves();
  handle.joint = graph::print(*halves.joint().graph);
  handle.nodes = halves.joint().graph->size();
  handle.forward = graph::print(halves.forward());
  if (const auto* backward = halves.backward()) handle.backward = graph::print(*backward);
  handle.saved_bytes = halves.saved_bytes();
  return handle;
}

TraceHandle trace_function(py::function function, const py::iterable& args,
                           const std::string& partitioner, bool decompose) {
  std::vector<aten::Value> inputs = values_from(args);
  const py::gil_scoped_release unlocked;
  const aten::RecordedCalls captured =
      aten::record_calls(wrap_function(std::move(function)), inputs, record_options());
  for (const at::Tensor& tensor : captured.tensors) inputs.emplace_back(c10::IValue(tensor));
  return trace_captured(*captured.graph, inputs, partitioner, decompose);
}

TraceHandle trace_text(const std::string& text, const py::iterable& args,
                       const std::string& partitioner, bool decompose) {
  const std::vector<aten::Value> inputs = values_from(args);
  const py::gil_scoped_release unlocked;
  return trace_captured(*graph::parse(text, "<graph>"), inputs, partitioner, decompose);
}

py::dict partition_text(const std::string& joint, std::size_t forward_outputs,
                        const std::string& partitioner) {
  const auto graph = graph::parse(joint, "<joint graph>");
  const autograd::Partition halves = partitioner_named(partitioner)(*graph, forward_outputs);
  py::dict made;
  made["forward"] = graph::print(*halves.forward);
  made["backward"] = graph::print(*halves.backward);
  made["saved"] = halves.saved;
  made["saved_bytes"] = halves.saved_bytes;
  made["saved_bytes_new"] = halves.saved_bytes_new;
  return made;
}

}  // namespace

void add_aot(py::module_& module) {
  add_fast_call(module);
  py::class_<FunctionHandle>(module, "CompiledFunction")
      .def(py::init<py::function, py::function, const py::object&, const BackendOptions&,
                    const std::string&, bool, std::optional<std::size_t>>(),
           py::arg("function"), py::arg("recorded_as"), py::arg("backend"), py::arg("options"),
           py::arg("name"), py::arg("fallback"), py::arg("cache_limit"))
      .def(py::init<const std::string&, const py::object&, const BackendOptions&, bool,
                    std::optional<std::size_t>>(),
           py::arg("graph"), py::arg("backend"), py::arg("options"), py::arg("fallback"),
           py::arg("cache_limit"))
      .def(py::init<const GraphHandle&, const py::object&, const BackendOptions&,
                    const std::string&, bool, std::optional<std::size_t>>(),
           py::arg("graph"), py::arg("backend"), py::arg("options"), py::arg("name"),
           py::arg("fallback"), py::arg("cache_limit"))
      .def_property_readonly("graphs", &FunctionHandle::graphs)
      .def("raise_as", &FunctionHandle::raise_as, py::arg("eager"))
      .def("prepare", &FunctionHandle::prepare)
      .def("__call__", &FunctionHandle::call);
  py::class_<TraceHandle>(module, "Trace")
      .def_readonly("captured", &TraceHandle::captured)
      .def_readonly("joint", &TraceHandle::joint)
      .def_readonly("forward", &TraceHandle::forward)
      .def_readonly("backward", &TraceHandle::backward)
      .def_readonly("saved_bytes", &TraceHandle::saved_bytes)
      .def_readonly("nodes", &TraceHandle::nodes);
  module.def("trace_function", &trace_function, py::arg("function"), py::arg("inputs"),
             py::arg("partitioner"), py::arg("decompose"));
  module.def("trace_text", &trace_text, py::arg("text"), py::arg("inputs"), py::arg("partitioner"),
             py::arg("decompose"));
  module.def("partition_text", &partition_text, py::arg("joint"), py::arg("forward_outputs"),
             py::arg("partitioner"));
  module.attr("DEFAULT_BACKEND") = kDefaultBackend;
  module.def("check_backend", [](const py::object& backend) { backend_from(backend); });
  module.def("list_backends", [] {
    py::list names;
    for (const auto& backend : all_backends()) names.append(backend->name);
    return names;
  });
}

}  // namespace assay::binding
