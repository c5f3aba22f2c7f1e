// Written against the C API: pybind11's own calls cost as much as a small operator.
#include "fast_call.h"

#include "function_handle.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

struct FastCall {
  PyObject_HEAD PyObject* owner;  // the Python object of `handle`; null until there is one
  FunctionHandle* handle;         // kept alive by `owner`
};

FastCall* cast(PyObject* self) { return reinterpret_cast<FastCall*>(self); }

PyObject* call_slowly(PyObject* self, PyObject* args, PyObject* kwargs) {
  static PyObject* const name = PyUnicode_InternFromString("call_slowly");
  PyObject* method = PyObject_GetAttr(self, name);
  if (method == nullptr) return nullptr;
  PyObject* result = PyObject_Call(method, args, kwargs);
  Py_DECREF(method);
  return result;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  FunctionHandle* handle = cast(self)->handle;
  const bool is_plain = kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0;
  if (handle == nullptr || !is_plain) return call_slowly(self, args, kwargs);
  // The call may let go of `self`.
  const py::object kept = py::reinterpret_borrow<py::object>(cast(self)->owner);
  try {
    PyObject** items = &PyTuple_GET_ITEM(args, 0);
    const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(args));
    if (auto result = handle->try_fast_call({items, count})) return result->release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  } catch (...) {
    py::detail::try_translate_exceptions();
    return nullptr;
  }
  return call_slowly(self, args, kwargs);
}

// set_fast(handle): from now on `handle`, an assay._C.CompiledFunction, is called; None: no longer.
PyObject* set_fast(PyObject* self, PyObject* owner) {
  FunctionHandle* handle = nullptr;
  if (owner != Py_None) {
    try {
      handle = py::cast<FunctionHandle*>(py::handle(owner));
    } catch (const std::exception&) {
      PyErr_SetString(PyExc_TypeError, "set_fast expects a CompiledFunction or None");
      return nullptr;
    }
  }
  PyObject* before = cast(self)->owner;
  cast(self)->owner = handle == nullptr ? nullptr : Py_NewRef(owner);
  cast(self)->handle = handle;
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->owner);
  return 0;
}

int clear(PyObject* self) {
  cast(self)->handle = nullptr;
  Py_CLEAR(cast(self)->owner);
  return 0;
}

void deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {{"set_fast", &set_fast, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&call)},
                       {Py_tp_methods, methods},
                       {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
                       {0, nullptr}};

PyType_Spec spec = {"assay._C.FastCall", sizeof(FastCall), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

void add_fast_call(py::module_& module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  module.attr("FastCall") = py::reinterpret_steal<py::object>(type);
}

}  // namespace assay::binding
