// assay._C: the C++ library as Python sees it. Thin: it converts values and forwards calls; the
// typed interface is in python/assay.
#include <c10/core/GradMode.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "aot.h"
#include "assay/error.h"
#include "assay/stage.h"
#include "assay/version.h"
#include "aten/facts.h"
#include "aten/resolve.h"
#include "aten/runner.h"
#include "backends/error.h"
#include "capture.h"
#include "captured_function.h"
#include "compare.h"
#include "config.h"
#include "config/config.h"
#include "config/observe_settings.h"
#include "graph/print.h"
#include "graph_handle.h"
#include "observe/observe.h"
#include "observe/timings.h"
#include "python_backend.h"
#include "python_error.h"
#include "python_values.h"
#include "repro/debug_directory.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"
#include "repro/write.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

py::object call_by_name(const std::string& name, const py::tuple& args, const py::dict& kwargs) {
  aten::Arguments arguments;
  arguments.positional = values_from(args);
  for (auto [key, value] : kwargs) {
    arguments.keywords.push_back({py::cast<std::string>(key), from_python(value)});
  }
  // A lone name is a method of the first argument.
  const graph::Target target(name);
  const bool is_method = name.starts_with('.');
  const auto resolution = is_method
                              ? aten::resolve(graph::Op::call_method, graph::Target(name.substr(1)))
                              : aten::resolve(graph::Op::call_function, target);
  aten::Value result;
  {
    const py::gil_scoped_release unlocked;
    result = aten::call(resolution, arguments, name);
  }
  return to_python(result);
}

py::object run_graph(const graph::Graph& graph, std::vector<aten::Value> inputs,
                     const graph::python::Source* source) {
  aten::Value result;
  {
    const py::gil_scoped_release unlocked;
    const aten::GraphRunner runner(graph, source);
    result = runner.run(std::move(inputs));
  }
  return to_python(result);
}

// A graph together with the text it was read from.
class ReproHandle {
 public:
  explicit ReproHandle(repro::ReproFile file) : file_(std::move(file)) {}

  std::string code() const { return graph::print(*file_.graph); }
  std::string text() const { return repro::print_repro_file(file_); }
  std::size_t size() const { return file_.graph->size(); }
  std::unique_ptr<GraphHandle> graph() const {
    return std::make_unique<GraphHandle>(GraphAndObjects{file_.graph->clone(), {}});
  }
  std::string stage() const { return repro::to_string(file_.stage); }

  py::tuple inputs(std::uint64_t seed, const std::optional<std::string>& save_dir) const {
    repro::InputOptions options{seed, {}};
    if (save_dir) options.save_directory = *save_dir;
    const repro::Inputs loaded = repro::load_inputs(file_, options);
    py::list values;
    for (const aten::Value& value : loaded.values) values.append(to_python(value));
    return py::make_tuple(values, loaded.notes);
  }

  // As `assay run`: attributes, inputs and random operators each start from the seed.
  py::object run(std::uint64_t seed, const std::optional<std::string>& save_dir) const {
    const c10::AutoGradMode grad(file_.stage != repro::Stage::after_aot);
    repro::InputOptions options{seed, {}};
    if (save_dir) options.save_directory = *save_dir;
    repro::seed_generator(seed);
    aten::Value result;
    {
      const py::gil_scoped_release unlocked;
      const observe::Phase phase("run", observe::Component::aten);
      aten::simulate_process_groups(file_.process_groups);  // planning asks for them
      const aten::GraphRunner runner(*file_.graph, file_.source.get());
      repro::Inputs loaded = repro::load_inputs(file_, options);
      repro::seed_generator(seed);
      result = runner.run(std::move(loaded.values));
    }
    return to_python(result);
  }

  py::object run_with(const py::iterable& inputs) const {
    return run_graph(*file_.graph, values_from(inputs), file_.source.get());
  }

 private:
  repro::ReproFile file_;
};

// Raises an exception of ours as the class that it names, of python/assay/errors.py.
void add_exceptions() {
  // Never destroyed: the translator lives as long as the process.
  static const auto* classes = new py::object(py::module_::import("assay.errors"));
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const auto* standard = dynamic_cast<const std::exception*>(&error);
      PyErr_SetString(classes->attr(error.python_class()).ptr(),
                      standard == nullptr ? "" : standard->what());
    }
  });
}

}  // namespace

}  // namespace assay::binding

PYBIND11_MODULE(_C, module) {
  using namespace assay;
  using namespace assay::binding;
  module.doc() = "Assay's C++ library";
  module.attr("version") = std::string(version);
  module.attr("torch_version") = std::string(torch_version);

  add_exceptions();
  add_python_errors();
  py::list stages;
  for (const std::string_view name : kStageNames) stages.append(std::string(name));
  module.attr("stages") = py::tuple(stages);

  module.def("call", &call_by_name, py::arg("name"), py::arg("args"), py::arg("kwargs"),
             "Call a function by its qualified name, or a method as '.name', without Python.");

  py::class_<ReproHandle>(module, "Repro")
      .def_property_readonly("code", &ReproHandle::code)
      .def_property_readonly("text", &ReproHandle::text)
      .def_property_readonly("stage", &ReproHandle::stage)
      .def("__len__", &ReproHandle::size)
      .def("graph", &ReproHandle::graph)
      .def("inputs", &ReproHandle::inputs, py::arg("seed") = 0, py::arg("save_dir") = py::none())
      .def("run", &ReproHandle::run, py::arg("seed") = 0, py::arg("save_dir") = py::none())
      .def("run_with", &ReproHandle::run_with, py::arg("inputs"));
  module.def(
      "read_repro",
      [](const std::string& path) {
        const observe::Phase phase("parse", observe::Component::parse);
        return std::make_unique<ReproHandle>(repro::read_repro_file(path));
      },
      py::arg("path"));
  module.def(
      "parse_repro",
      [](const std::string& text, const std::string& name) {
        return std::make_unique<ReproHandle>(repro::parse_repro_file(text, name));
      },
      py::arg("text"), py::arg("name") = "<text>");

  add_graph(module);
  add_aot(module);
  add_capture(module);
  add_captured_functions(module);
  add_python_backends(module);
  add_compare(module);
  add_config(module);

  module.def("log_warning", [](const std::string& text) {
    observe::log(observe::Component::dynamo, observe::Level::warning, text);
  });
  module.def(
      "set_logs",
      [](const std::string& text) {
        observe::parse_logs(text, "set_logs");  // so that an error names what was called
        config::set<"logs">(text);
      },
      py::arg("text"));
  module.def("compile_times", [] { return observe::compile_times(); });
  module.def("configure_from_environment", [] {
    observe::Settings settings = config::observe_settings();
    settings.timings = true;  // compile_times() works without being asked for first, as in stock
    observe::configure(settings);
    repro::start_capture_log();
  });
}
