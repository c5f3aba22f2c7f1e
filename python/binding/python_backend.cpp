#include "python_backend.h"

#include <torch/csrc/autograd/python_variable.h>

#include <set>

#include "assay/error.h"
#include "aten/result_structure.h"
#include "aten/value.h"
#include "backends/error.h"
#include "capture/object_graph.h"
#include "captured_function.h"
#include "fx_graph.h"
#include "fx_meta.h"
#include "graph/graph.h"
#include "held_object.h"
#include "python_error.h"
#include "python_values.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

// A tensor that Python has seen before is the same object.
py::object input_object(c10::IValue value) {
  if (value.isTensor()) {
    if (!value.toTensor().defined()) return py::none();
    return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(value).toTensor()));
  }
  if (value.isInt()) return py::int_(value.toInt());
  if (value.isDouble()) return py::float_(value.toDouble());
  if (value.isBool()) return py::bool_(value.toBool());
  return to_python(aten::unpack_value(std::move(value)));
}

c10::IValue output_value(py::handle object) {
  if (THPVariable_Check(object.ptr())) return THPVariable_Unpack(object.ptr());
  return aten::pack_value(from_python(object));
}

std::size_t count_leaves(const graph::Graph& graph) {
  std::size_t count = 0;
  aten::for_each_result(graph.output()->args()[0], [&](const graph::Argument&) { ++count; });
  return count;
}

// What the user's function returned.
class PythonGraph : public CompiledGraph, public capture::ObjectGraph {
 public:
  PythonGraph(py::object callable, std::string backend, std::size_t results)
      : callable_(hold(std::move(callable))), backend_(std::move(backend)), results_(results) {}

  void call(std::span<c10::IValue> inputs, Outputs& outputs) const override {
    const py::gil_scoped_acquire gil;
    try {
      py::tuple arguments(inputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        arguments[i] = input_object(std::move(inputs[i]));
      }
      add_results((*callable_)(*arguments), outputs);
    } catch (const py::error_already_set& error) {
      throw PythonError(error);
    }
  }

  void call_objects(std::span<PyObject*> arguments, Outputs& outputs) const override {
    const std::size_t count = arguments.size() | PY_VECTORCALL_ARGUMENTS_OFFSET;
    const auto returned = py::reinterpret_steal<py::object>(
        PyObject_Vectorcall(callable_->ptr(), arguments.data(), count, nullptr));
    if (!returned) throw PythonError(py::error_already_set());
    add_results(returned, outputs);
  }

 private:
  void add_results(const py::object& returned, Outputs& outputs) const {
    if (!PyTuple_Check(returned.ptr()) && !PyList_Check(returned.ptr())) {
      throw backends::BackendError(backend_, "what it compiled returned a '" +
                                                 std::string(Py_TYPE(returned.ptr())->tp_name) +
                                                 "', not a tuple or list of results");
    }
    const auto results = py::reinterpret_borrow<py::sequence>(returned);
    if (results.size() != results_) {
      throw backends::BackendError(backend_,
                                   "what it compiled returned " + std::to_string(results.size()) +
                                       " results; the graph has " + std::to_string(results_));
    }
    for (std::size_t i = 0; i < results_; ++i) outputs.push_back(output_value(results[i]));
  }

  std::shared_ptr<const py::object> callable_;
  std::string backend_;
  std::size_t results_;
};

// Where in the user's program the graph begins.
std::string user_stack(const graph::Graph& graph) {
  const auto line = py::module_::import("linecache").attr("getline");
  for (const graph::Node& node : graph.nodes()) {
    if (!node.is_call() || node.meta.stack.empty()) continue;
    std::vector<graph::StackFrame> frames = node.meta.stack.frames();
    for (graph::StackFrame& frame : frames) {
      if (frame.text.empty()) {
        frame.text = py::cast<std::string>(line(frame.file, frame.line).attr("strip")());
      }
    }
    return stack_text(frames);
  }
  return {};
}

py::dict keywords(const BackendOptions& options) {
  py::dict made;
  if (!options.empty()) made["options"] = options;  // as torch.compile passes them on
  return made;
}

std::shared_ptr<const CompiledGraph> compile_in_python(const py::object& callable,
                                                       const std::string& name,
                                                       const PythonBackendOptions& options,
                                                       const CompileRequest& request) {
  const py::gil_scoped_acquire gil;
  try {
    const py::object module = module_from_graph(*request.graph, {.flat_output = true});
    if (options.compile_subgraph_reason) {
      const py::object reason = options.compile_subgraph_reason(request);
      if (!reason.is_none()) module.attr("compile_subgraph_reason") = reason;
    }
    py::list inputs;
    for (const c10::IValue& input : request.inputs) inputs.append(input_object(input));
    py::object compiled = callable(module, inputs, **keywords(request.options));
    if (PyCallable_Check(compiled.ptr()) == 0) {
      throw backends::BackendError(name, std::string("it returned a '") +
                                             Py_TYPE(compiled.ptr())->tp_name +
                                             "', which cannot be called");
    }
    return std::make_shared<const PythonGraph>(std::move(compiled), name,
                                               count_leaves(*request.graph));
  } catch (const py::error_already_set& error) {
    const PythonError raised(error);
    // Ctrl-C and exit() are not failures of the backend.
    if (!error.matches(PyExc_Exception)) throw raised;
    throw PythonBackendError(name, raised, user_stack(*request.graph));
  }
}

// What the graph calls, in it and in its subgraphs.
void add_function_names(const graph::Graph& graph, std::set<std::string>& names) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.op() == graph::Op::call_function) names.insert(node.target().name());
  }
  for (const graph::Attribute& attribute : graph.attributes()) {
    if (const graph::Graph* subgraph = attribute.subgraph()) add_function_names(*subgraph, names);
  }
}

SentBackend send(const py::object& callable, const std::string& name,
                 const std::filesystem::path& directory, const graph::Graph& graph) {
  const py::gil_scoped_acquire gil;
  try {
    const py::object send_to_trials = py::module_::import("assay._reduce").attr("send");
    const auto sent =
        py::cast<std::pair<std::vector<std::string>, std::map<std::string, std::string>>>(
            send_to_trials(callable, name, directory.string(), function_names(graph)));
    return {sent.first, sent.second};
  } catch (const py::error_already_set& error) {
    if (!error.matches(py::module_::import("assay.errors").attr("UserError")))
      throw PythonError(error);
    throw UserError(py::cast<std::string>(py::str(error.value())));
  }
}

Backend describe(py::object callable, std::string name, PythonBackendOptions options) {
  if (PyCallable_Check(callable.ptr()) == 0) {
    throw UserError("a backend must be a name or a callable, found a '" +
                    std::string(Py_TYPE(callable.ptr())->tp_name) + "'");
  }
  Backend backend;
  backend.name = name;
  backend.description = "a function of this Python program";
  backend.tags = options.tags;
  backend.accepts_any_option = true;
  const auto held = hold(std::move(callable));
  backend.send = [held, name](const std::filesystem::path& directory, const graph::Graph& graph) {
    return send(*held, name, directory, graph);
  };
  backend.compile = [held, name, options = std::move(options)](const CompileRequest& request) {
    return compile_in_python(*held, name, options, request);
  };
  return backend;
}

}  // namespace

std::set<std::string> function_names(const graph::Graph& graph) {
  std::set<std::string> names;
  add_function_names(graph, names);
  return names;
}

std::shared_ptr<const Backend> python_backend(py::object callable, std::string name,
                                              PythonBackendOptions options) {
  return std::make_shared<const Backend>(
      describe(std::move(callable), std::move(name), std::move(options)));
}

std::shared_ptr<const Backend> backend_from(const py::object& backend,
                                            PythonBackendOptions options) {
  if (py::isinstance<py::str>(backend)) return find_backend(py::cast<std::string>(backend));
  const py::object name = py::module_::import("assay._backends").attr("backend_name")(backend);
  return python_backend(backend, py::cast<std::string>(name), std::move(options));
}

void add_python_backends(py::module_& module) {
  module.def(
      "register_backend",
      [](py::object callable, std::string name, std::vector<std::string> tags) {
        register_backend(describe(
            std::move(callable), std::move(name),
            {.tags = std::move(tags), .compile_subgraph_reason = compile_subgraph_reason}));
      },
      py::arg("function"), py::arg("name"), py::arg("tags"));
}

}  // namespace assay::binding
