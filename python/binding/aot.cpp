#include "aot.h"

#include <frameobject.h>

#include <memory>
#include <string>

#include "autograd/aot.h"
#include "autograd/decompositions.h"
#include "backends/registry.h"
#include "frontend/compiled_function.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "observe/observe.h"
#include "python_values.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

// The Python lines that lead to the call being recorded, outermost first, without torch's own.
std::vector<graph::StackFrame> python_stack() {
  std::vector<graph::StackFrame> stack;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame != nullptr) {
    const auto code =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const auto file = py::cast<std::string>(code.attr("co_filename"));
    const bool is_library = file.find("/torch/") != std::string::npos || file.starts_with('<');
    const bool is_ours = file.ends_with("/assay/aot.py");
    if (is_ours && py::cast<std::string>(code.attr("co_name")) != "__torch_function__") {
      Py_DECREF(frame);  // here the program was called; who called us is no news
      break;
    }
    if (!is_library && !is_ours) {
      stack.push_back(
          {file, PyFrame_GetLineNumber(frame), py::cast<std::string>(code.attr("co_name")), {}});
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  std::reverse(stack.begin(), stack.end());
  return stack;
}

// Besides us: a tensor that Python has seen is held by its Python object, which we hold in turn.
bool is_held_elsewhere(const at::Tensor& tensor) {
  const py::gil_scoped_acquire gil;
  PyObject* object = tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj();
  if (object == nullptr) return tensor.use_count() > 1;
  return tensor.use_count() > 2 || Py_REFCNT(object) > 1;
}

// Calls a Python function; what assay.aot refuses in Python is refused here.
py::object call(const py::function& function, const py::tuple& arguments) {
  try {
    return function(*arguments);
  } catch (const py::error_already_set& error) {
    if (!error.matches(py::module_::import("assay._C").attr("TraceError"))) throw;
    throw TraceError(py::cast<std::string>(py::str(error.value())));
  }
}

// A result of a program that runs eagerly and that only Python can hold.
struct PythonResult {
  py::object object;
};

aten::Function wrap(py::function function) {
  // Freed with the GIL held, whoever lets go of it last.
  auto held = std::shared_ptr<py::function>(new py::function(std::move(function)),
                                            [](py::function* object) {
                                              const py::gil_scoped_acquire gil;
                                              delete object;
                                            });
  return [held](const std::vector<aten::Value>& inputs) {
    const py::gil_scoped_acquire gil;
    py::tuple arguments(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) arguments[i] = to_python(inputs[i]);
    const py::object result = call(*held, arguments);
    try {
      return from_python(result);
    } catch (const UserError& error) {
      if (!aten::is_recording_calls()) throw PythonResult{result};
      throw TraceError("a compiled program cannot return this: " + error.detail().message,
                       "return tensors, numbers, and lists, tuples or dicts of them");
    }
  };
}

// A compiled Python function.
class FunctionHandle {
 public:
  FunctionHandle(py::function function, py::function recorded_as, const std::string& backend,
                 const std::string& name, bool fallback, std::size_t cache_limit)
      : function_(wrap(function),
                  options(backend, name, fallback, cache_limit, wrap(std::move(recorded_as)))) {
    if (fallback) eager_ = std::move(function);
  }

  FunctionHandle(const std::string& graph, const std::string& backend, bool fallback,
                 std::size_t cache_limit)
      : function_(std::shared_ptr<const graph::Graph>(graph::parse(graph, "<graph>")),
                  options(backend, "graph", fallback, cache_limit)) {}

  py::object call(const py::args& args) {
    std::vector<aten::Value> inputs;
    try {
      inputs = values_from(args);
    } catch (const UserError& error) {
      if (!eager_) throw;
      observe::log(observe::Component::dynamo, observe::Level::warning,
                   "running eagerly: " + error.detail().message);
      return eager_(*args);
    }
    try {
      aten::Value result;
      {
        const py::gil_scoped_release unlocked;
        result = function_.call(inputs);
      }
      return to_python(result);
    } catch (const PythonResult& result) {
      return result.object;
    }
  }

  std::vector<std::string> graphs() const {
    std::vector<std::string> texts;
    for (const auto& entry : function_.entries()) {
      texts.push_back(entry->graph == nullptr ? std::string() : graph::print(*entry->graph));
    }
    return texts;
  }

 private:
  static frontend::FunctionOptions options(const std::string& backend, const std::string& name,
                                           bool fallback, std::size_t cache_limit,
                                           aten::Function recorded_as = {}) {
    frontend::FunctionOptions made;
    made.recorded_as = std::move(recorded_as);
    made.backend = backend;
    made.name = name;
    made.fallback = fallback;
    made.cache_limit = cache_limit;
    made.is_held_elsewhere = &is_held_elsewhere;
    made.stack = [] {
      const py::gil_scoped_acquire gil;
      return python_stack();
    };
    return made;
  }

  frontend::CompiledFunction function_;
  py::object eager_;  ///< With fallback: what runs arguments that only Python can hold.
};

autograd::Partitioner partitioner_named(const std::string& name) {
  if (name == "default") return &autograd::partition_default;
  if (name == "min_cut") return &autograd::partition_min_cut;
  throw UserError("unknown partitioner '" + name + "'", "there are: default, min_cut");
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
  const autograd::AotProgram program(graph, inputs, options);
  handle.joint = graph::print(*program.program().joint().graph);
  handle.nodes = program.program().joint().graph->size();
  handle.forward = graph::print(program.program().forward());
  if (const auto* backward = program.program().backward())
    handle.backward = graph::print(*backward);
  handle.saved_bytes = program.program().saved_bytes();
  return handle;
}

TraceHandle trace_function(py::function function, const py::iterable& args,
                           const std::string& partitioner, bool decompose) {
  std::vector<aten::Value> inputs = values_from(args);
  aten::RecordCallsOptions options;
  options.is_held_elsewhere = &is_held_elsewhere;
  options.stack = [] {
    const py::gil_scoped_acquire gil;
    return python_stack();
  };
  const py::gil_scoped_release unlocked;
  const aten::RecordedCalls captured =
      aten::record_calls(wrap(std::move(function)), inputs, options);
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
  py::class_<FunctionHandle>(module, "CompiledFunction")
      .def(py::init<py::function, py::function, const std::string&, const std::string&, bool,
                    std::size_t>(),
           py::arg("function"), py::arg("recorded_as"), py::arg("backend"), py::arg("name"),
           py::arg("fallback"), py::arg("cache_limit"))
      .def(py::init<const std::string&, const std::string&, bool, std::size_t>(), py::arg("graph"),
           py::arg("backend"), py::arg("fallback"), py::arg("cache_limit"))
      .def_property_readonly("graphs", &FunctionHandle::graphs)
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
  module.def("check_backend", [](const std::string& name) { backends::find_backend(name); });
  module.def("list_backends", [] {
    py::list names;
    for (const backends::Backend& backend : backends::all_backends()) {
      names.append(std::string(backend.name));
    }
    return names;
  });
}

}  // namespace assay::binding
