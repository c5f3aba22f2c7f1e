#include "capture/python_calls.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <deque>
#include <stdexcept>
#include <string>
#include <utility>

#include "assay/error.h"
#include "aten/trace_keys.h"
#include "capture/constant_objects.h"
#include "capture/raised.h"
#include "capture/source.h"
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

Ref checked(PyObject* object) {
  if (object == nullptr) throw python_error();
  return Ref::steal(object);
}

class Maker {
 public:
  explicit Maker(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {}

  Ref make(const PythonArgument& argument) const {
    const std::vector<PythonArgument>& parts = argument.parts;
    switch (argument.kind) {
      case PythonArgument::Kind::object:
        return argument.object;
      case PythonArgument::Kind::tensor: {
        const Ref tensor = checked(wrap_tensor(tensors_.at(argument.index)));
        Ref made = array_of_tensor(tensor.get(), argument.form);
        if (!made) throw python_error();
        return made;
      }
      case PythonArgument::Kind::tuple:
        return tuple_of(parts);
      case PythonArgument::Kind::list:
        return checked(PySequence_List(tuple_of(parts).get()));
      case PythonArgument::Kind::slice:
        return checked(
            PySlice_New(make(parts[0]).get(), make(parts[1]).get(), make(parts[2]).get()));
      case PythonArgument::Kind::dict: {
        Ref dict = checked(PyDict_New());
        for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
          if (PyDict_SetItem(dict.get(), make(parts[i]).get(), make(parts[i + 1]).get()) < 0) {
            throw python_error();
          }
        }
        return dict;
      }
      case PythonArgument::Kind::function:
        return function_like(argument);
      case PythonArgument::Kind::method:
        return checked(PyMethod_New(make(parts[0]).get(), make(parts[1]).get()));
      case PythonArgument::Kind::partial: {
        Ref made = checked(
            PyObject_CallOneArg(reinterpret_cast<PyObject*>(partial_type()), make(parts[0]).get()));
        checked(PyObject_CallMethod(made.get(), "__setstate__", "((OOOO))", make(parts[0]).get(),
                                    make(parts[1]).get(), make(parts[2]).get(), Py_None));
        return made;
      }
      case PythonArgument::Kind::nothing:
        break;
    }
    return {};
  }

  Ref tuple_of(const std::vector<PythonArgument>& parts, std::size_t first = 0) const {
    Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(parts.size() - first)));
    for (std::size_t i = first; i < parts.size(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i - first), make(parts[i]).release());
    }
    return tuple;
  }

 private:
  Ref function_like(const PythonArgument& argument) const {
    const auto* like = reinterpret_cast<PyFunctionObject*>(argument.object.get());
    Ref made = checked(
        PyFunction_NewWithQualName(like->func_code, like->func_globals, like->func_qualname));
    auto* function = reinterpret_cast<PyFunctionObject*>(made.get());
    const auto set = [&](PyObject*& field, std::size_t part) {
      Ref value = make(argument.parts[part]);
      Py_XSETREF(field, value.get() == Py_None ? nullptr : value.release());
    };
    Py_XSETREF(function->func_name, Py_NewRef(like->func_name));
    set(function->func_defaults, 0);
    set(function->func_kwdefaults, 1);
    set(function->func_dict, 2);
    constexpr std::size_t kFirstCell = 3;
    if (argument.parts.size() > kFirstCell) {
      const auto count = static_cast<Py_ssize_t>(argument.parts.size() - kFirstCell);
      Ref closure = checked(PyTuple_New(count));
      for (Py_ssize_t i = 0; i < count; ++i) {
        const Ref contents = make(argument.parts[static_cast<std::size_t>(i) + kFirstCell]);
        PyTuple_SET_ITEM(closure.get(), i, checked(PyCell_New(contents.get())).release());
      }
      Py_XSETREF(function->func_closure, closure.release());
    }
    return made;
  }

  const std::vector<at::Tensor>& tensors_;
};

thread_local bool is_misfit = false;

[[noreturn]] void raise_misfit() {
  is_misfit = true;
  throw std::runtime_error("a function returned other objects, sizes or dtypes than before");
}

// What the program has done with the results of the recorded call holds of such tensors only.
void check_results(const PythonCall& call, const std::vector<at::Tensor>& results) {
  bool is_as_before = results.size() == call.results.size();
  for (std::size_t i = 0; is_as_before && i < results.size(); ++i) {
    const PythonCall::Result& expected = call.results[i];
    is_as_before = results[i].scalar_type() == expected.dtype &&
                   results[i].requires_grad() == expected.requires_grad &&
                   results[i].dim() == static_cast<std::int64_t>(expected.sizes.size()) &&
                   (call.results_vary || results[i].sizes() == at::IntArrayRef(expected.sizes)) &&
                   (expected.form == TensorForm::tensor ||
                    results[i].strides() == at::IntArrayRef(expected.strides));
  }
  if (!is_as_before) {
    raise_misfit();
  }
}

std::vector<at::Tensor> call_python(std::int64_t number, std::vector<at::Tensor> tensors) {
  if (aten::is_traced_by_thread()) {
    throw TraceError("the graph calls a function of Python, to differentiate or to transform",
                     "backend 'eager' runs it");
  }
  const pybind11::gil_scoped_acquire locked;
  const PythonCall& call = python_calls().at(static_cast<std::size_t>(number));
  Ref result;
  {
    const Maker maker(tensors);
    const Ref callable = maker.make(call.callable);
    const Ref arguments = maker.tuple_of(call.arguments);
    tensors.clear();
    const auto named =
        static_cast<std::size_t>(call.names ? PyTuple_GET_SIZE(call.names.get()) : 0);
    result = Ref::steal(PyObject_Vectorcall(callable.get(), &PyTuple_GET_ITEM(arguments.get(), 0),
                                            call.arguments.size() - named, call.names.get()));
  }
  if (!result) throw python_error();
  if (call.returns_nothing) return {};
  std::vector<PyObject*> found;
  const bool is_known = call.is_of_arrays ? arrays_of_result(result.get(), found)
                                          : tensors_of_result(result.get(), found);
  const auto is_as_before = [&](std::size_t i) {
    return i < call.results.size() && form_of(found[i]) == call.results[i].form;
  };
  std::vector<at::Tensor> results;
  for (std::size_t i = 0; is_known && i < found.size() && is_as_before(i); ++i) {
    const Ref tensor = is_tensor(found[i]) ? Ref::borrow(found[i]) : tensor_of_array(found[i]);
    if (!tensor) throw python_error();
    results.push_back(tensor_of(tensor.get()));
  }
  if (!is_known || results.size() != found.size()) {
    raise_misfit();
  }
  check_results(call, results);
  return results;
}

// The array is changed in place, which its version must show.
void call_python_to_change(std::int64_t number, const at::Tensor& changed,
                           std::vector<at::Tensor> tensors) {
  tensors.insert(tensors.begin(), changed);
  call_python(number, std::move(tensors));
  if (!changed.is_inference()) changed.unsafeGetTensorImpl()->bump_version();
}

void expect_truth(const at::Tensor& condition, bool expected) {
  if (aten::is_traced_by_thread()) {
    throw TraceError("the graph checks the truth of a tensor", "backend 'eager' runs it");
  }
  if (condition.is_nonzero() != expected) raise_misfit();
}

at::Tensor call_python_for_one(std::int64_t number, std::vector<at::Tensor> tensors) {
  std::vector<at::Tensor> results = call_python(number, std::move(tensors));
  if (results.size() != 1) {
    raise_misfit();
  }
  return std::move(results[0]);
}

}  // namespace

bool has_misfit() { return std::exchange(is_misfit, false); }

std::int64_t add_python_call(PythonCall call) {
  python_calls().push_back(std::move(call));
  return static_cast<std::int64_t>(python_calls().size()) - 1;
}

bool tensors_of_result(PyObject* result, std::vector<PyObject*>& tensors, int depth) {
  if (is_tensor(result)) {
    tensors.push_back(result);
    return true;
  }
  if (depth > 20) return false;
  if (PyTuple_Check(result) || PyList_CheckExact(result)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
      if (!tensors_of_result(PySequence_Fast_GET_ITEM(result, i), tensors, depth + 1)) return false;
    }
    return true;
  }
  if (PyDict_CheckExact(result)) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(result, &position, &key, &value) != 0) {
      if (!is_scalar(key) || !tensors_of_result(value, tensors, depth + 1)) return false;
    }
    return true;
  }
  return result == Py_None;
}

TORCH_LIBRARY(assay_python, library) {
  library.def("call(int number, Tensor[] tensors) -> Tensor[]");
  library.def("call_one(int number, Tensor[] tensors) -> Tensor");
  library.def("expect(Tensor condition, bool expected) -> ()");
  library.impl("expect", torch::CppFunction::makeFromUnboxedFunction(&expect_truth));
  library.def("change(int number, Tensor(a!) changed, Tensor[] tensors) -> ()");
  library.impl("change", torch::CppFunction::makeFromUnboxedFunction(&call_python_to_change));
  library.impl("call", torch::CppFunction::makeFromUnboxedFunction(&call_python));
  library.impl("call_one", torch::CppFunction::makeFromUnboxedFunction(&call_python_for_one));
}

}  // namespace assay::capture
