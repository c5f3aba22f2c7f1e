#include "function_handle.h"

#include <frameobject.h>
#include <torch/csrc/autograd/python_variable.h>

#include <memory>

#include "assay/error.h"
#include "aten/runner.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "held_object.h"
#include "observe/observe.h"
#include "python_backend.h"
#include "python_values.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

using Values = c10::SmallVector<c10::IValue, 8>;

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
      Py_DECREF(frame);  // the program begins here; its callers are not part of it
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

// Calls a Python function; what assay.aot rejects in Python is rejected here.
py::object call(const py::function& function, const py::tuple& arguments) {
  try {
    return function(*arguments);
  } catch (const py::error_already_set& error) {
    if (!error.matches(py::module_::import("assay.errors").attr("TraceError"))) throw;
    throw TraceError(py::cast<std::string>(py::str(error.value())));
  }
}

// A result of a program that runs eagerly and that only Python can hold.
struct PythonResult {
  py::object object;
};

frontend::FunctionOptions function_options(const py::object& backend,
                                           const BackendOptions& backend_options,
                                           const std::string& name, bool fallback,
                                           std::optional<std::size_t> cache_limit) {
  frontend::FunctionOptions made;
  made.backend = backend_from(backend);
  made.backend_options = backend_options;
  made.name = name;
  made.fallback = fallback;
  made.cache_limit = cache_limit;
  const aten::RecordCallsOptions recording = record_options();
  made.is_held_elsewhere = recording.is_held_elsewhere;
  made.stack = recording.stack;
  return made;
}

frontend::FunctionOptions with_recorded_as(frontend::FunctionOptions options,
                                           aten::Function recorded_as) {
  options.recorded_as = std::move(recorded_as);
  return options;
}

// A tensor or a number that fits into an IValue as it is.
bool add_plain_value(PyObject* object, Values& values) {
  if (THPVariable_Check(object)) {
    values.emplace_back(THPVariable_Unpack(object));
  } else if (PyFloat_CheckExact(object)) {
    values.emplace_back(PyFloat_AS_DOUBLE(object));
  } else if (PyBool_Check(object)) {
    values.emplace_back(object == Py_True);
  } else if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const std::int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return false;
    values.emplace_back(number);
  } else {
    return false;
  }
  return true;
}

}  // namespace

aten::Function wrap_function(py::function function) {
  return [held = hold(std::move(function))](const std::vector<aten::Value>& inputs) {
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

aten::RecordCallsOptions record_options() {
  aten::RecordCallsOptions options;
  options.is_held_elsewhere = &is_held_elsewhere;
  options.stack = [] {
    const py::gil_scoped_acquire gil;
    return python_stack();
  };
  return options;
}

FunctionHandle::FunctionHandle(py::function function, py::function recorded_as,
                               const py::object& backend, const BackendOptions& backend_options,
                               const std::string& name, bool fallback,
                               std::optional<std::size_t> cache_limit)
    : function_(
          wrap_function(function),
          with_recorded_as(function_options(backend, backend_options, name, fallback, cache_limit),
                           wrap_function(std::move(recorded_as)))) {
  if (fallback) eager_ = std::move(function);
}

FunctionHandle::FunctionHandle(const std::string& graph, const py::object& backend,
                               const BackendOptions& backend_options, bool fallback,
                               std::optional<std::size_t> cache_limit)
    : function_(std::shared_ptr<const graph::Graph>(graph::parse(graph, "<graph>")),
                function_options(backend, backend_options, "graph", fallback, cache_limit)) {}

FunctionHandle::FunctionHandle(
    std::pair<std::shared_ptr<const graph::Graph>, std::vector<at::Tensor>> graph_and_tensors,
    frontend::FunctionOptions options)
    : function_(std::move(graph_and_tensors.first), std::move(options),
                std::move(graph_and_tensors.second)) {}

FunctionHandle::FunctionHandle(const GraphHandle& graph, const py::object& backend,
                               const BackendOptions& backend_options, const std::string& name,
                               bool fallback, std::optional<std::size_t> cache_limit)
    : FunctionHandle(lift_attributes(graph.source()),
                     function_options(backend, backend_options, name, fallback, cache_limit)) {}

void FunctionHandle::prepare(const py::args& args) {
  Values inputs;
  for (py::handle argument : args) inputs.push_back(aten::pack_value(from_python(argument)));
  const py::gil_scoped_release unlocked;
  function_.prepare(inputs);
}

py::object FunctionHandle::run(std::span<c10::IValue> inputs, std::span<PyObject* const> args) {
  try {
    Values outputs;
    const aten::ResultStructure* structure = nullptr;
    {
      const py::gil_scoped_release unlocked;
      structure = &function_.call(inputs, outputs);
    }
    if (structure->is_leaf() && outputs[0].isTensor() && outputs[0].toTensor().defined()) {
      return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(outputs[0]).toTensor()));
    }
    return to_python(structure->fill(outputs));
  } catch (const PythonResult& result) {
    return result.object;
  } catch (const aten::OperatorError&) {
    if (raise_as_) {
      py::tuple again(args.size());
      for (std::size_t i = 0; i < args.size(); ++i) {
        again[i] = py::reinterpret_borrow<py::object>(args[i]);
      }
      raise_as_(*again);
    }
    throw;  // only what was compiled fails
  }
}

std::optional<py::object> FunctionHandle::try_fast_call(std::span<PyObject* const> args) {
  Values inputs;
  for (PyObject* argument : args) {
    if (!add_plain_value(argument, inputs)) return std::nullopt;
  }
  return run(inputs, args);
}

py::object FunctionHandle::call(const py::args& args) {
  Values inputs;
  try {
    for (py::handle argument : args) inputs.push_back(aten::pack_value(from_python(argument)));
  } catch (const UserError& error) {
    if (!eager_) throw;
    observe::log(observe::Component::dynamo, observe::Level::warning,
                 "running eagerly: " + error.detail().message);
    return eager_(*args);
  }
  return run(inputs, {&PyTuple_GET_ITEM(args.ptr(), 0), args.size()});
}

std::vector<std::string> FunctionHandle::graphs() const {
  std::vector<std::string> texts;
  for (const auto& entry : function_.entries()) {
    texts.push_back(entry->graph == nullptr ? std::string() : graph::print(*entry->graph));
  }
  return texts;
}

}  // namespace assay::binding
