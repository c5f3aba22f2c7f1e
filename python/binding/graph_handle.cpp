#include "graph_handle.h"

#include "fx_meta.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "python_backend.h"
#include "python_values.h"
#include "repro/reduce_now.h"
#include "repro/save.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

std::unique_ptr<GraphHandle> parse(const std::string& text, const std::string& name) {
  GraphAndObjects source{std::shared_ptr<const graph::Graph>(graph::parse(text, name)), {}};
  return std::make_unique<GraphHandle>(std::move(source));
}

py::object to_graph_module(const GraphHandle& handle, bool flat_output) {
  return module_from_graph(*handle.source().graph,
                           {.objects = handle.source().objects, .flat_output = flat_output});
}

// The graph with its inputs as a repro file; the inputs' data goes to `directory / "storages"`.
void save_repro(const GraphHandle& handle, const py::iterable& inputs, const std::string& file,
                const std::string& backend, const std::string& stage, bool accuracy,
                const std::string& directory) {
  const auto [graph, tensors] = lift_attributes(handle.source());
  std::vector<aten::Value> values = values_from(inputs);
  for (const at::Tensor& tensor : tensors) values.emplace_back(c10::IValue(tensor));
  repro::SaveOptions options;
  options.stage = stage == "after_aot" ? repro::Stage::after_aot : repro::Stage::after_dynamo;
  options.backend = backend;
  options.accuracy = accuracy ? "True" : "False";
  options.command = "minify";
  options.save_dir = directory;
  repro::save_graph_repro(file, *graph, values, options);
}

std::optional<std::string> assay_command() {
  const auto found = repro::find_assay_command();
  return found ? std::optional(found->string()) : std::nullopt;
}

}  // namespace

std::string GraphHandle::code() const { return graph::print(*source_.graph); }

void GraphHandle::plan() {
  auto [graph, tensors] = lift_attributes(source_);
  std::vector<c10::IValue> bound;
  for (at::Tensor& tensor : tensors) bound.emplace_back(std::move(tensor));
  runner_ = std::make_unique<aten::GraphRunner>(*graph, nullptr, bound);
  planned_ = std::move(graph);
}

py::object GraphHandle::run(const py::args& inputs) {
  if (runner_ == nullptr) plan();
  aten::Value result;
  std::vector<aten::Value> values = values_from(inputs);
  {
    const py::gil_scoped_release unlocked;
    result = runner_->run(std::move(values));
  }
  return to_python(result);
}

std::pair<std::unique_ptr<GraphHandle>, std::vector<at::Tensor>> GraphHandle::lifted() const {
  auto [graph, tensors] = lift_attributes(source_);
  AttributeObjects objects;
  for (const auto& [path, object] : source_.objects) {
    if (graph->attribute(path) != nullptr) objects.emplace(path, object);
  }
  return {std::make_unique<GraphHandle>(GraphAndObjects{std::move(graph), std::move(objects)}),
          std::move(tensors)};
}

void add_graph(py::module_& module) {
  py::class_<GraphHandle>(module, "Graph")
      .def(py::init([](const std::string& text, const std::string& name) {
             auto made = parse(text, name);
             made->plan();
             return made;
           }),
           py::arg("text"), py::arg("name") = "<text>")
      .def_static("parse", &parse, py::arg("text"), py::arg("name") = "<text>")
      .def_property_readonly("code", &GraphHandle::code)
      .def("__len__", [](const GraphHandle& self) { return self.source().graph->size(); })
      .def("lifted", &GraphHandle::lifted)
      .def("function_names",
           [](const GraphHandle& self) { return function_names(*self.source().graph); })
      .def("__call__", &GraphHandle::run);
  module.def(
      "graph_from_module",
      [](const py::object& graph_module, const py::object& example_inputs) {
        return std::make_unique<GraphHandle>(graph_from_module(graph_module, example_inputs));
      },
      py::arg("module"), py::arg("example_inputs"));
  module.def("module_from_graph", &to_graph_module, py::arg("graph"),
             py::arg("flat_output") = false);
  module.def("save_repro", &save_repro, py::arg("graph"), py::arg("inputs"), py::arg("file"),
             py::arg("backend"), py::arg("stage"), py::arg("accuracy"), py::arg("directory"));
  module.def("assay_command", &assay_command);
  module.def("example_from_annotation", &example_from_annotation, py::arg("annotation"),
             py::arg("mode"));
}

}  // namespace assay::binding
