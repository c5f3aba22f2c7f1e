// Calls, functions and exceptions.
#include "capture/errors.h"
#include "capture/operations.h"
#include "capture/reference.h"

namespace assay::capture {

namespace {

// The instance to raise for what a raise statement names: an exception, or a class to call.
Reference exception_from(PyObject* named) {
  if (!PyExceptionClass_Check(named)) {
    if (PyExceptionInstance_Check(named)) return Reference::borrow(named);
    PyErr_SetString(PyExc_TypeError, "exceptions must derive from BaseException");
    return {};
  }
  Reference value = Reference::steal(PyObject_CallNoArgs(named));
  if (value && !PyExceptionInstance_Check(value.get())) {
    PyErr_Format(PyExc_TypeError,
                 "calling %R should have returned an instance of BaseException, not %R", named,
                 Py_TYPE(value.get()));
    return {};
  }
  return value;
}

bool set_cause(PyObject* exception, PyObject* cause) {
  Reference value;
  if (PyExceptionClass_Check(cause)) {
    value = Reference::steal(PyObject_CallNoArgs(cause));
    if (!value) return false;
  } else if (PyExceptionInstance_Check(cause)) {
    value = Reference::borrow(cause);
  } else if (cause != Py_None) {
    PyErr_SetString(PyExc_TypeError, "exception causes must derive from BaseException");
    return false;
  }
  PyException_SetCause(exception, value.release());
  return true;
}

bool check_except_class(PyObject* type) {
  if (PyExceptionClass_Check(type)) return true;
  PyErr_SetString(PyExc_TypeError,
                  "catching classes that do not inherit from BaseException is not allowed");
  return false;
}

}  // namespace

PyObject* Operations::call(Activation& /*a*/, const CallOperands& operands) {
  const auto keywords =
      static_cast<std::size_t>(operands.names != nullptr ? PyTuple_GET_SIZE(operands.names) : 0);
  return PyObject_Vectorcall(operands.callable.object, operands.args,
                             (operands.count - keywords) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                             operands.names);
}

PyObject* Operations::call_ex(Activation& /*a*/, Operand callable, Operand args, Operand kwargs) {
  Reference keywords = Reference::borrow(kwargs.object);
  if (keywords && !PyDict_CheckExact(keywords.get())) {
    keywords = Reference::steal(PyDict_New());
    if (!keywords) return nullptr;
    if (_PyDict_MergeEx(keywords.get(), kwargs.object, 2) < 0) {
      reword_kwargs_error(callable.object, kwargs.object);
      return nullptr;
    }
  }
  Reference arguments = Reference::borrow(args.object);
  if (!PyTuple_CheckExact(arguments.get())) {
    if (!check_args_iterable(callable.object, args.object)) return nullptr;
    arguments = Reference::steal(PySequence_Tuple(args.object));
    if (!arguments) return nullptr;
  }
  return PyObject_Call(callable.object, arguments.get(), keywords.get());
}

PyObject* Operations::make_function(Activation& a, PyObject* code, PyObject* defaults,
                                    PyObject* kwdefaults, PyObject* annotations,
                                    PyObject* closure) {
  auto* function = reinterpret_cast<PyFunctionObject*>(PyFunction_New(code, a.frame->f_globals));
  if (function == nullptr) return nullptr;
  // The setters would convert what the compiler has laid out already.
  function->func_closure = Py_XNewRef(closure);
  function->func_annotations = Py_XNewRef(annotations);
  function->func_kwdefaults = Py_XNewRef(kwdefaults);
  function->func_defaults = Py_XNewRef(defaults);
  return reinterpret_cast<PyObject*>(function);
}

void Operations::raise(Activation& /*a*/, Operand exception, Operand cause) {
  if (exception.object == nullptr) {
    PyObject* handled = PyErr_GetHandledException();
    if (handled == nullptr) {
      PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
      return;
    }
    PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(handled)), handled,
                  PyException_GetTraceback(handled));
    return;
  }
  const Reference value = exception_from(exception.object);
  if (!value) return;
  if (cause.object != nullptr && !set_cause(value.get(), cause.object)) return;
  // Of a class that was named its instance need not be an instance.
  PyObject* type = PyExceptionClass_Check(exception.object)
                       ? exception.object
                       : PyExceptionInstance_Class(value.get());
  PyErr_SetObject(type, value.get());
}

int Operations::exception_matches(Activation& /*a*/, PyObject* exception, Operand type) {
  if (PyTuple_Check(type.object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type.object); ++i) {
      if (!check_except_class(PyTuple_GET_ITEM(type.object, i))) return -1;
    }
  } else if (!check_except_class(type.object)) {
    return -1;
  }
  return PyErr_GivenExceptionMatches(exception, type.object);
}

void Operations::handling(Activation& /*a*/, PyObject* /*exception*/) {}

}  // namespace assay::capture
