#include "python_error.h"

#include "held_object.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

std::string type_of(const py::error_already_set& error) {
  return py::cast<std::string>(error.type().attr("__name__"));
}

// What str() of the exception gives; an exception whose str() raises has no message.
std::string message_of(const py::error_already_set& error) {
  try {
    return py::cast<std::string>(py::str(error.value()));
  } catch (const py::error_already_set&) {
    return "";
  }
}

std::string text_of(const py::error_already_set& error) {
  const std::string message = message_of(error);
  return message.empty() ? type_of(error) : type_of(error) + ": " + message;
}

py::object with_traceback(const py::error_already_set& error) {
  py::object value = error.value();
  if (error.trace()) PyException_SetTraceback(value.ptr(), error.trace().ptr());
  return value;
}

std::string with_stack(const std::string& text, const std::string& stack) {
  return stack.empty() ? text : text + "\n\nfrom user code:\n" + stack;
}

// As Python raises it again: with the traceback it had.
void raise_again(const py::object& value) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
}

void raise_backend_failure(const PythonBackendError& error) {
  const py::object type = py::module_::import("assay.errors").attr("BackendCompilerFailed");
  const py::object raised = type(error.what());
  raised.attr("backend_name") = error.backend();
  raised.attr("inner_exception") = error.cause().value();
  PyException_SetCause(raised.ptr(), py::object(error.cause().value()).release().ptr());
  PyErr_SetObject(type.ptr(), raised.ptr());
}

}  // namespace

PythonError::PythonError(const py::error_already_set& error)
    : ProgramError(type_of(error), text_of(error), message_of(error)),
      value_(hold(with_traceback(error))) {}

PythonBackendError::PythonBackendError(const std::string& backend, const PythonError& cause,
                                       const std::string& stack)
    : BackendError(Text{with_stack("backend '" + backend + "' raised:\n" + cause.what(), stack)},
                   cause.what()),
      cause_(cause),
      backend_(backend) {}

void add_python_errors() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const PythonBackendError& error) {
      raise_backend_failure(error);
    } catch (const PythonError& error) {
      raise_again(error.value());
    }
  });
}

}  // namespace assay::binding
