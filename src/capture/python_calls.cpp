#include "capture/python_calls.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <deque>
#include <stdexcept>
#include <string>

#include "assay/error.h"
#include "aten/trace_keys.h"
#include "capture/raised.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// Guarded by the GIL.
std::deque<PythonCall>& python_calls() {
  static auto* const calls = new std::deque<PythonCall>;
  return *calls;
}

// What Python raised, as text. The frame that replays the graph then runs without it, for Python's
// own exception; Ctrl-C is not raised a second time by that.
std::runtime_error python_error() {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) PyErr_SetInterrupt();
  return std::runtime_error(text_of_raised(take_raised(), false));
}

std::vector<at::Tensor> call_python(std::int64_t number, std::vector<at::Tensor> tensors) {
  if (aten::is_traced_by_thread()) {
    throw TraceError("a gradient of the graph is written in Python", "backend 'eager' runs it");
  }
  const pybind11::gil_scoped_acquire locked;
  const PythonCall& call = python_calls().at(static_cast<std::size_t>(number));
  const Ref arguments = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(call.arguments.size())));
  if (!arguments) throw python_error();
  std::size_t next = 0;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    PyObject* given = call.arguments[i].get();
    PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i),
                     given != nullptr ? Py_NewRef(given) : wrap_tensor(tensors.at(next++)));
  }
  tensors.clear();
  const Ref result = Ref::steal(PyObject_CallObject(call.callable.get(), arguments.get()));
  if (!result) throw python_error();
  std::vector<at::Tensor> results;
  if (is_tensor(result.get())) return {tensor_of(result.get())};
  for (Py_ssize_t i = 0; PyTuple_Check(result.get()) && i < PyTuple_GET_SIZE(result.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(result.get(), i);
    if (!is_tensor(item)) throw std::runtime_error("a function returned other objects than before");
    results.push_back(tensor_of(item));
  }
  return results;
}

}  // namespace

std::int64_t add_python_call(PythonCall call) {
  python_calls().push_back(std::move(call));
  return static_cast<std::int64_t>(python_calls().size()) - 1;
}

TORCH_LIBRARY(assay_python, library) {
  library.def("call(int number, Tensor[] tensors) -> Tensor[]");
  library.impl("call", torch::CppFunction::makeFromUnboxedFunction(&call_python));
}

}  // namespace assay::capture
